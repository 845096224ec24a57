// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading, verifying, hashing and printing of GraphDef.

#include "neuron/Graph/GraphReader.h"

#include <cmath>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace neuroncore;
using namespace neuroncore::graph;
using namespace ::neuron::graph;
using testing::HasSubstr;

namespace {

void setType(TensorType *type, ScalarType dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides = {}) {
  type->Clear();
  type->set_dtype(dtype);
  for (int64_t size : sizes)
    type->add_sizes(size);
  for (int64_t stride : strides)
    type->add_strides(stride);
}

/// x: f32[2, 3]; scale: scalar; w: constant f32[3]; y, none = op(x, w, [scale, 0.5]); x := y.
GraphDef sample() {
  GraphDef graph;
  graph.set_version(1);
  graph.set_name("sample");
  graph.set_kind("inference");
  Input *x = graph.add_inputs();
  x->set_value(1);
  x->set_name("x");
  setType(x->mutable_type(), FLOAT32, {2, 3}, {1, 2});
  Input *scale = graph.add_inputs();
  scale->set_value(2);
  scale->set_name("scale");
  scale->set_kind(Input::SCALAR);
  setType(scale->mutable_type(), FLOAT64, {});
  Constant *w = graph.add_constants();
  w->set_value(3);
  setType(w->mutable_type(), FLOAT32, {3});
  w->set_data(std::string(12, '\1'));
  Node *node = graph.add_nodes();
  node->set_op("aten.addmul.default");
  node->set_name("addmul");
  node->add_arguments()->set_value(1);
  node->add_arguments()->set_value(3);
  auto *list = node->add_arguments()->mutable_list();
  list->add_items()->set_value(2);
  list->add_items()->set_floating(0.5);
  node->add_arguments()->set_none(true);
  node->add_arguments()->set_dtype(BFLOAT16);
  node->add_results(4);
  setType(node->add_types(), FLOAT32, {2, 3});
  node->add_results(0);
  node->add_types();
  Output *output = graph.add_outputs();
  output->set_value(4);
  setType(output->mutable_type(), FLOAT32, {2, 3}, {1, 2});
  output->set_mutates_input(1);
  graph.add_outputs();
  NodeLocation *location = graph.add_locations();
  location->add_nodes(0);
  Frame *frame = location->add_frames();
  frame->set_file("model.py");
  frame->set_line(12);
  frame->set_function("forward");
  frame->set_text("return x + w");
  return graph;
}

std::string failure(const std::function<void(GraphDef &)> &change) {
  GraphDef graph = sample();
  change(graph);
  Status status = verifyGraph(graph);
  return status ? "no error" : status.error().message();
}

std::span<const uint8_t> bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

} // namespace

TEST(Graph, ReadsWhatWasWritten) {
  std::string bytes = sample().SerializeAsString();
  Expected<GraphDef> graph = readGraph(bytesOf(bytes));
  ASSERT_TRUE(graph) << graph.error().message();
  EXPECT_EQ(graph->SerializeAsString(), bytes);
}

TEST(Graph, Rules) {
  EXPECT_EQ(failure([](GraphDef &) {}), "no error");
  // g1
  EXPECT_EQ(failure([](GraphDef &g) { g.set_version(2); }), "expected graph version 1 but got 2");
  EXPECT_THAT(failure([](GraphDef &g) { g.GetReflection()->MutableUnknownFields(&g)->AddVarint(99, 1); }),
              HasSubstr("found another in graph"));
  EXPECT_THAT(failure([](GraphDef &g) {
                Node *node = g.mutable_nodes(0);
                node->GetReflection()->MutableUnknownFields(node)->AddVarint(99, 1);
              }),
              HasSubstr("found another in .nodes[0]"));
  // g2
  EXPECT_THAT(failure([](GraphDef &g) { g.set_kind("sideways"); }), HasSubstr("but got 'sideways'"));
  // g3
  auto type = [](const std::function<void(TensorType *)> &change) {
    return failure([&](GraphDef &g) { change(g.mutable_nodes(0)->mutable_types(0)); });
  };
  EXPECT_THAT(type([](TensorType *t) { t->set_dtype(ScalarType(77)); }),
              HasSubstr("node 0 (aten.addmul.default): result 0: expected a known dtype but got code 77"));
  EXPECT_THAT(type([](TensorType *t) { setType(t, FLOAT32, std::vector<int64_t>(9, 1)); }),
              HasSubstr("at most 8 dimensions but got 9"));
  EXPECT_THAT(type([](TensorType *t) { t->set_sizes(0, -1); }), HasSubstr("expected size 0 of at least 0 but got -1"));
  EXPECT_THAT(type([](TensorType *t) { t->add_strides(1); }), HasSubstr("expected no strides or 2 but got 1"));
  EXPECT_THAT(type([](TensorType *t) { setType(t, FLOAT32, {2, 3}, {-3, 1}); }), HasSubstr("expected stride 0"));
  EXPECT_THAT(type([](TensorType *t) { t->set_storage_offset(-1); }), HasSubstr("storage offset"));
  EXPECT_THAT(type([](TensorType *t) { setType(t, FLOAT32, {int64_t(1) << 32, int64_t(1) << 32}); }),
              HasSubstr("below 2^62 bytes"));
  EXPECT_THAT(type([](TensorType *t) { setType(t, FLOAT32, {0, int64_t(1) << 62}); }), HasSubstr("below 2^62 bytes"));
  EXPECT_THAT(type([](TensorType *t) { setType(t, FLOAT32, {3, 1}, {INT64_MAX, 1}); }), HasSubstr("below 2^62 bytes"));
  // g4
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_inputs(0)->set_value(0); }), HasSubstr("at least 1 but got 0"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_inputs(1)->set_value(1); }),
              HasSubstr("input 1: expected each value to be defined once but %1"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(0)->set_value(4); }),
              HasSubstr("argument 0: expected a value defined earlier but got %4"));
  EXPECT_THAT(failure([](GraphDef &g) {
                g.mutable_nodes(0)->mutable_arguments(2)->mutable_list()->mutable_items(0)->set_value(9);
              }),
              HasSubstr("argument 2: expected a value defined earlier but got %9"));
  // g5
  EXPECT_THAT(failure([](GraphDef &g) { setType(g.mutable_inputs(1)->mutable_type(), FLOAT32, {}); }),
              HasSubstr("expected a run-time scalar of type f64[]"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_inputs(1)->set_kind(Input::RNG_STATE); }),
              HasSubstr("expected an rng_state of type i64[2] but got f64[]"));
  EXPECT_THAT(failure([](GraphDef &g) {
                for (int i = 0; i < 2; ++i) {
                  g.mutable_inputs(i)->set_kind(Input::RNG_STATE);
                  setType(g.mutable_inputs(i)->mutable_type(), INT64, {2});
                }
              }),
              HasSubstr("expected at most one rng_state"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_inputs(0)->set_kind(Input::Kind(7)); }),
              HasSubstr("input kind but got code 7"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_inputs(0)->set_wrapped_number(true); }),
              HasSubstr("expected a wrapped number"));
  EXPECT_EQ(failure([](GraphDef &g) { g.mutable_inputs(1)->set_wrapped_number(true); }), "no error");
  // g6
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_constants(0)->set_data("abc"); }),
              HasSubstr("expected 12 bytes of data but got 3"));
  EXPECT_THAT(failure([](GraphDef &g) { setType(g.mutable_constants(0)->mutable_type(), FLOAT32, {3}, {2}); }),
              HasSubstr("expected row-major strides"));
  // g7
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_nodes(0)->mutable_types()->RemoveLast(); }),
              HasSubstr("expected 2 result types but got 1"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_nodes(0)->mutable_types(1)->set_dtype(FLOAT32); }),
              HasSubstr("expected no type for a None result"));
  // g8
  for (const char *op : {"", "aten", "aten.add", "aten..x", ".a.b", "aten.add."})
    EXPECT_THAT(failure([&](GraphDef &g) { g.mutable_nodes(0)->set_op(op); }), HasSubstr("expected an operator")) << op;
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_nodes(0)->add_arguments(); }),
              HasSubstr("argument 5: expected a kind of argument"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(4)->set_dtype(ScalarType(50)); }),
              HasSubstr("got code 50"));
  // g9
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_outputs(0)->set_value(9); }),
              HasSubstr("output 0: expected a defined value but got %9"));
  EXPECT_THAT(failure([](GraphDef &g) { setType(g.mutable_outputs(0)->mutable_type(), FLOAT32, {3, 2}); }),
              HasSubstr("expected type f32[2, 3] of %4 but got f32[3, 2]"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_outputs(0)->set_mutates_input(3); }),
              HasSubstr("expected mutates_input of at most 2 but got 3"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_outputs(0)->set_mutates_input(2); }),
              HasSubstr("but input 1 is f64[]"));
  EXPECT_THAT(failure([](GraphDef &g) { *g.add_outputs() = g.outputs(0); }), HasSubstr("input 0 is mutated twice"));
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_outputs(1)->set_mutates_input(1); }), HasSubstr("None output"));
  // g10
  EXPECT_THAT(failure([](GraphDef &g) { g.mutable_locations(0)->set_nodes(0, 1); }),
              HasSubstr("below 1 but got node 1"));
  EXPECT_THAT(failure([](GraphDef &g) { g.add_locations()->add_nodes(0); }),
              HasSubstr("location 1: expected one location"));
}

TEST(Graph, HashIgnoresNamesLocationsAndNumbering) {
  GraphDef graph = sample();
  Hash128 original = hashGraph(graph);
  graph.clear_locations();
  graph.set_name("other");
  graph.mutable_inputs(0)->set_name("other");
  graph.mutable_nodes(0)->set_name("other");
  EXPECT_EQ(hashGraph(graph), original);
  // Other numbers for the same values.
  graph.mutable_inputs(0)->set_value(70);
  graph.mutable_nodes(0)->mutable_arguments(0)->set_value(70);
  ASSERT_TRUE(verifyGraph(graph));
  EXPECT_EQ(hashGraph(graph), original);
}

TEST(Graph, HashFollowsEverythingElse) {
  const Hash128 original = hashGraph(sample());
  const std::function<void(GraphDef &)> changes[] = {
      [](GraphDef &g) { g.set_kind("eager"); },
      [](GraphDef &g) { g.mutable_inputs(0)->mutable_type()->set_strides(0, 3); },
      [](GraphDef &g) { g.mutable_inputs(0)->mutable_type()->set_storage_offset(1); },
      [](GraphDef &g) { setType(g.mutable_inputs(1)->mutable_type(), INT64, {}); },
      [](GraphDef &g) { g.mutable_constants(0)->set_data(std::string(12, '\2')); },
      [](GraphDef &g) { g.mutable_nodes(0)->set_op("aten.addmul.out"); },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(0)->set_value(3); },
      [](GraphDef &g) {
        g.mutable_nodes(0)->mutable_arguments(2)->mutable_list()->mutable_items(1)->set_floating(-0.5);
      },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(2)->mutable_list()->mutable_items(1)->set_integer(0); },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(3)->set_boolean(true); },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(3)->set_text("x"); },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(3)->set_device("x"); },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(3)->set_layout("x"); },
      [](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(3)->set_memory_format("x"); },
      [](GraphDef &g) { g.mutable_outputs(0)->set_mutates_input(0); },
      [](GraphDef &g) { g.mutable_outputs()->RemoveLast(); },
  };
  std::vector<Hash128> hashes = {original};
  for (const auto &change : changes) {
    GraphDef graph = sample();
    change(graph);
    hashes.push_back(hashGraph(graph));
  }
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

TEST(Graph, HashDistinguishesSignedZeroAndAcceptsNan) {
  auto withNumber = [](double value) {
    GraphDef graph = sample();
    graph.mutable_nodes(0)->mutable_arguments(3)->set_floating(value);
    return hashGraph(graph);
  };
  EXPECT_NE(withNumber(0.0), withNumber(-0.0));
  EXPECT_EQ(withNumber(std::nan("")), withNumber(std::nan("")));
}

TEST(Graph, PrintsOneLinePerValue) {
  std::string text = printGraph(sample());
  EXPECT_EQ(text.substr(0, text.find("// 12 bytes")), "graph \"sample\" inference version 1\n"
                                                      "  %1 = input \"x\" : f32[2, 3] strides[1, 2]\n"
                                                      "  %2 = input scalar \"scale\" : f64[]\n"
                                                      "  %3 = constant : f32[3] ");
  EXPECT_THAT(text,
              HasSubstr("\n  %4, _ = aten.addmul.default(%1, %3, [%2, 0.5], None, bf16) : f32[2, 3], None // addmul\n"
                        "      // model.py:12 in forward: return x + w\n"
                        "  output %4 : f32[2, 3] strides[1, 2] mutates input 0\n"
                        "  output None\n"));
}

namespace {

std::string difference(const std::function<void(GraphDef &)> &change) {
  GraphDef a = sample(), b = sample();
  change(b);
  std::string text;
  for (const std::string &line : explainDifference(a, b))
    text += line + "\n";
  return text;
}

} // namespace

TEST(Graph, EqualGraphsHaveNoDifference) {
  EXPECT_EQ(difference([](GraphDef &) {}), "");
  EXPECT_EQ(difference([](GraphDef &g) {
              g.set_name("other");
              g.clear_locations();
              g.mutable_nodes(0)->set_name("other");
              g.mutable_inputs(0)->set_name("other");
            }),
            "");
}

TEST(Graph, DifferencesAreNamed) {
  EXPECT_EQ(difference([](GraphDef &g) { g.set_kind("forward"); }), "graph kind: inference in A, forward in B\n");
  EXPECT_EQ(difference([](GraphDef &g) { g.mutable_inputs(0)->mutable_type()->set_dtype(BFLOAT16); }),
            "input 0 (x): f32[2, 3] strides[1, 2] in A, bf16[2, 3] strides[1, 2] in B\n");
  EXPECT_EQ(difference([](GraphDef &g) { g.mutable_constants(0)->set_data(std::string(12, '\2')); }),
            "constant 0 (f32[3]): the values differ\n");
  EXPECT_THAT(difference([](GraphDef &g) { g.mutable_nodes(0)->set_op("aten.addmul.out"); }),
              HasSubstr("node 0: aten.addmul.default in A, aten.addmul.out in B\n  A: %4, _ = aten.addmul.default("));
  std::string argument = difference([](GraphDef &g) {
    g.mutable_nodes(0)->mutable_arguments(2)->mutable_list()->mutable_items(1)->set_floating(0.25);
  });
  EXPECT_THAT(argument, HasSubstr("node 0 (aten.addmul.default): argument 2 differs\n"));
  EXPECT_THAT(argument, HasSubstr("[%2, 0.25]"));
  EXPECT_THAT(argument, HasSubstr("     model.py:12 in forward: return x + w\n"));
  EXPECT_THAT(difference([](GraphDef &g) { g.mutable_nodes(0)->mutable_types(0)->set_sizes(0, 3); }),
              HasSubstr("result 0 is f32[2, 3] in A, f32[3, 3] in B"));
  EXPECT_THAT(difference([](GraphDef &g) { g.mutable_nodes(0)->mutable_arguments(0)->set_value(3); }),
              HasSubstr("node 0 reads input 0 in A, constant 0 in B"));
  EXPECT_EQ(difference([](GraphDef &g) { g.mutable_outputs(0)->set_mutates_input(0); }),
            "output 0: f32[2, 3] strides[1, 2], written to input 0 in A, f32[2, 3] strides[1, 2] in B\n");
  EXPECT_THAT(
      difference([](GraphDef &g) { *g.add_nodes() = g.nodes(0); }),
      HasSubstr("nodes: 1 in A, 2 in B\nnode 1: B has 1 more here and then goes on as A does\n  A: no more nodes\n"));
  EXPECT_EQ(difference([](GraphDef &g) {
              g.mutable_nodes(0)->set_results(0, 9);
              g.mutable_outputs(0)->set_value(9);
            }),
            "the graphs compute the same, but number their values differently\n");
}

TEST(Graph, DifferencesOfGraphsOfOtherLengths) {
  GraphDef a = sample(), b = sample();
  *b.add_nodes() = b.nodes(0);
  b.mutable_nodes(0)->set_op("aten.other.default");
  // An inserted node in front, and on either side.
  EXPECT_EQ(explainDifference(a, b)[1], "node 0: B has 1 more here and then goes on as A does");
  EXPECT_EQ(explainDifference(b, a)[1], "node 0: A has 1 more here and then goes on as B does");
  // Nothing in common, and no nodes at all.
  b.mutable_nodes(1)->set_op("aten.another.default");
  EXPECT_EQ(explainDifference(a, b)[1], "node 0: aten.addmul.default in A, aten.other.default in B");
  EXPECT_EQ(explainDifference(b, a)[1], "node 0: aten.other.default in A, aten.addmul.default in B");
  a.clear_nodes();
  EXPECT_EQ(explainDifference(a, b)[1], "node 0: B has 2 more here and then goes on as A does");
  EXPECT_EQ(explainDifference(b, a)[1], "node 0: A has 2 more here and then goes on as B does");
}

TEST(Graph, ConstantsWithoutTheirContentAreComparedByHash) {
  GraphDef a = sample();
  a.mutable_constants(0)->clear_data();
  EXPECT_FALSE(verifyGraph(a));
  EXPECT_TRUE(verifyGraph(a, ConstantData::MayBeLeftOut));
  const std::string one[] = {"1"}, two[] = {"2"};
  EXPECT_EQ(explainDifference(a, a, one, one).size(), 0u);
  EXPECT_EQ(explainDifference(a, a, one, two).size(), 1u);
}

TEST(Graph, GarbageGivesAnErrorOrAVerifiedGraph) {
  EXPECT_FALSE(readGraph({})); // version 0
  std::mt19937_64 random(3);
  const std::string good = sample().SerializeAsString();
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    for (int flips = 1 + int(random() % 3); flips; --flips)
      bytes[random() % bytes.size()] = char(random());
    if (random() % 2)
      bytes.resize(random() % bytes.size());
    Expected<GraphDef> graph = readGraph(bytesOf(bytes));
    if (!graph)
      continue;
    ++accepted;
    EXPECT_TRUE(verifyGraph(*graph));
    EXPECT_FALSE(printGraph(*graph).empty());
    hashGraph(*graph);
  }
  EXPECT_GT(accepted, 0);
  // Deep nesting is refused by the parser.
  GraphDef graph = sample();
  Argument *argument = graph.mutable_nodes(0)->add_arguments();
  for (int i = 0; i < 300; ++i)
    argument = argument->mutable_list()->add_items();
  argument->set_integer(1);
  EXPECT_FALSE(readGraph(bytesOf(graph.SerializeAsString())));
}

TEST(Graph, ScalarTypes) {
  for (int code = FLOAT32; code <= UINT64; ++code) {
    EXPECT_GT(scalarTypeBytes(ScalarType(code)), 0) << code;
    EXPECT_NE(scalarTypeName(ScalarType(code)), "invalid") << code;
  }
  EXPECT_EQ(scalarTypeBytes(SCALAR_TYPE_UNSPECIFIED), 0);
  EXPECT_FALSE(ScalarType_IsValid(UINT64 + 1));
}
