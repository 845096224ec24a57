// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whole NEFFs: round trips, determinism, tolerance of other writers, and refusal of what is not ours or damaged.

#include "neuron/Neff/Neff.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "SampleNeff.h"
#include "lib/Neff/DmaTable.h"
#include "neuron/Isa/Codec.h"
#include "neuron/Neff/Container.h"

using namespace neuroncore;
using namespace neuroncore::neff;
using testing::HasSubstr;

namespace {

std::vector<uint8_t> write(const Neff &neff, bool compress = true) {
  Expected<std::vector<uint8_t>> bytes = writeNeff(neff, {compress});
  if (!bytes) {
    ADD_FAILURE() << bytes.error().message();
    return {};
  }
  return *bytes;
}

std::string writeFailure(const Neff &neff) {
  Expected<std::vector<uint8_t>> bytes = writeNeff(neff);
  return bytes ? "no error" : bytes.error().message();
}

std::string readFailure(std::span<const uint8_t> bytes, ErrorKind *kind = nullptr) {
  Expected<Neff> neff = readNeff(bytes);
  if (!neff && kind)
    *kind = neff.error().kind();
  return neff ? "no error" : neff.error().message();
}

Header headerOf(const std::vector<uint8_t> &bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

std::vector<Member> membersOf(const std::vector<uint8_t> &bytes) {
  return *unpackMembers(std::span(bytes).subspan(1024), 1 << 30);
}

/// The NEFF with its members changed, packed again with a good hash.
std::vector<uint8_t> repack(const std::vector<uint8_t> &bytes,
                            const std::function<void(std::vector<Member> &)> &change) {
  std::vector<Member> members = membersOf(bytes);
  change(members);
  return makeContainer(headerOf(bytes), *packMembers(members, true));
}

Member &member(std::vector<Member> &members, std::string_view name) {
  for (Member &m : members)
    if (m.name == name)
      return m;
  ADD_FAILURE() << "no member " << name;
  return members.front();
}

std::vector<uint8_t> editJson(const std::vector<uint8_t> &bytes, std::string_view name,
                              const std::function<void(Json &)> &edit) {
  return repack(bytes, [&](std::vector<Member> &members) {
    Member &m = member(members, name);
    Json json = Json::parse(m.data);
    edit(json);
    std::string text = json.dump();
    m.data.assign(text.begin(), text.end());
  });
}

void expectEqual(const Neff &a, const Neff &b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.compilerVersion, b.compilerVersion);
  EXPECT_EQ(a.sbufBytesPerPartition, b.sbufBytesPerPartition);
  EXPECT_EQ(a.psumBytesPerPartition, b.psumBytesPerPartition);
  EXPECT_EQ(a.semaphores, b.semaphores);
  EXPECT_EQ(a.rngIncrement, b.rngIncrement);
  EXPECT_EQ(a.metricsJson, b.metricsJson);
  ASSERT_EQ(a.variables.size(), b.variables.size());
  for (size_t i = 0; i < a.variables.size(); ++i) {
    const Variable &x = a.variables[i], &y = b.variables[i];
    EXPECT_EQ(x.name, y.name);
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.role, y.role);
    EXPECT_EQ(x.bytes, y.bytes);
    EXPECT_EQ(x.alignment, y.alignment);
    EXPECT_EQ(x.dtype, y.dtype);
    EXPECT_EQ(x.shape, y.shape);
    EXPECT_EQ(x.strides, y.strides);
    EXPECT_EQ(x.aliasOf, y.aliasOf);
    EXPECT_EQ(x.data, y.data);
  }
  ASSERT_EQ(a.debug.size(), b.debug.size());
  for (size_t i = 0; i < a.debug.size(); ++i) {
    EXPECT_EQ(a.debug[i].kernel, b.debug[i].kernel);
    EXPECT_EQ(a.debug[i].op, b.debug[i].op);
    EXPECT_EQ(a.debug[i].nodes, b.debug[i].nodes);
  }
  for (int s = 0; s < isa::kNumStreams; ++s)
    EXPECT_EQ(*isa::encodeStream(isa::kStreamEngines[s], a.program[s]),
              *isa::encodeStream(isa::kStreamEngines[s], b.program[s]));
}

} // namespace

TEST(Neff, RoundTrip) {
  Neff neff = sampleNeff();
  for (bool compress : {true, false}) {
    Expected<Neff> read = readNeff(write(neff, compress));
    ASSERT_TRUE(read) << read.error().message();
    expectEqual(neff, *read);
  }
  EXPECT_LT(write(neff, true).size(), write(neff, false).size());
}

TEST(Neff, BytesAreDeterministic) {
  EXPECT_EQ(write(sampleNeff()), write(sampleNeff()));
  EXPECT_EQ(write(sampleNeff(), false), write(sampleNeff(), false));
  // The identity follows the content.
  Neff other = sampleNeff();
  other.rngIncrement = 8;
  Header a = headerOf(write(sampleNeff())), b = headerOf(write(other));
  EXPECT_NE(std::memcmp(a.uuid, b.uuid, 16), 0);
  EXPECT_EQ(a.uuid[6] >> 4, 8);
  EXPECT_EQ(a.uuid[8] >> 6, 2);
}

TEST(Neff, HeaderFields) {
  std::vector<uint8_t> bytes = write(sampleNeff());
  Header header = headerOf(bytes);
  EXPECT_EQ(header.pkg_version, 2u);
  EXPECT_EQ(header.header_size, 1024u);
  EXPECT_EQ(header.data_size, bytes.size() - 1024);
  EXPECT_EQ(header.neff_version_major, 2u);
  EXPECT_EQ(header.feature_bits, uint64_t(1) << 47);
  EXPECT_EQ(header.lnc_size, 1u);
  EXPECT_EQ(header.num_tpb, 1u);
  EXPECT_EQ(header.tpb_per_node[0], 1);
  EXPECT_EQ(fixedText(header.name), "sample");
  EXPECT_THAT(std::string(reinterpret_cast<const char *>(header.neff_build_version)), HasSubstr("open-torch-neuronx"));
  EXPECT_EQ(bytes[1024], 0x1f);
  EXPECT_EQ(bytes[1025], 0x8b);
  // gzip: no name, no time.
  EXPECT_EQ(bytes[1024 + 3], 0);
  EXPECT_EQ(std::count(&bytes[1024 + 4], &bytes[1024 + 8], 0), 4);
  Neff longName = sampleNeff();
  longName.name = std::string(400, 'n');
  EXPECT_EQ(fixedText(headerOf(write(longName)).name).size(), 255u);
  EXPECT_EQ(readNeff(write(longName))->name, longName.name);
}

TEST(Neff, MembersAreTheDocumentedOnes) {
  std::vector<std::string> names;
  for (const Member &m : membersOf(write(sampleNeff())))
    names.push_back(m.name);
  EXPECT_THAT(names, testing::ElementsAre("kelf-0.json", "neff.json", "info.json", "metrics.json", "sg00/def.json",
                                          "sg00/PE0.json", "sg00/Activation0.json", "sg00/Pool0.json", "sg00/DVE0.json",
                                          "sg00/SP0.json", "sg00/PE0.bin", "sg00/Activation0.bin", "sg00/Pool0.bin",
                                          "sg00/DVE0.bin", "sg00/SP0.bin", "sg00/constant_1.npy",
                                          "x_open_neuron/manifest.json", "x_open_neuron/sg00.debug.json"));
}

TEST(Neff, DefinitionReadsLikeThePublicFormat) {
  std::vector<Member> members = membersOf(write(sampleNeff()));
  Json kelf = Json::parse(member(members, "kelf-0.json").data);
  EXPECT_EQ(kelf["version"], "0.5");
  EXPECT_EQ(kelf["graphs"][0]["definition"], "sg00/def.json");
  Json def = Json::parse(member(members, "sg00/def.json").data);
  EXPECT_EQ(def["pe"], "PE0.json");
  EXPECT_EQ(def["act_instr"], "Activation0.bin");
  EXPECT_EQ(def["var"]["x"]["type"], "input");
  EXPECT_EQ(def["var"]["x"]["var_id"], 0);
  EXPECT_EQ(def["var"]["x"]["size"], 32768);
  EXPECT_EQ(def["var"]["w"]["type"], "file");
  EXPECT_EQ(def["var"]["w"]["file_name"], "constant_1.npy");
  EXPECT_EQ(def["var"]["scratch"]["type"], "tmp-buf");
  EXPECT_EQ(def["var"]["SB"]["type"], "state-buffer");
  EXPECT_EQ(def["var"]["x.updated"]["x_open_neuron"]["alias_of"], 0);
  EXPECT_EQ(def["dma_queue"]["qSyncIO0"]["owner"], "sp");
  EXPECT_EQ(def["x_open_neuron"]["target"], "trn2");
  Json act = Json::parse(member(members, "sg00/Activation0.json").data);
  EXPECT_EQ(act["activation_function_sets"], Json::array({"natural_log_exp_and_others"}));
  // The tensor table of the packager.
  Json node = Json::parse(member(members, "neff.json").data)["x_open_neuron_nodes"][0];
  EXPECT_EQ(node["executor"], "NeuronCore");
  EXPECT_EQ(node["vars"][0]["variable"], "x");
  EXPECT_EQ(node["vars"][0]["format"], "NC");
}

TEST(Neff, StaticTransfersAreInTheDocumentedForm) {
  std::vector<Member> members = membersOf(write(sampleNeff()));
  Json def = Json::parse(member(members, "sg00/def.json").data);
  Json sp = Json::parse(member(members, "sg00/SP0.json").data);
  ASSERT_EQ(sp["dma"].size(), 4u);
  EXPECT_EQ(sp["x_open_neuron"]["omitted_dma"], 0);
  Json desc = sp["dma"][0]["desc"][0];
  EXPECT_EQ(desc["from"], "x");
  EXPECT_EQ(desc["to"], "SB");
  EXPECT_EQ(desc["from_sizes"], Json::array({32768, 1}));
  EXPECT_EQ(desc["to_sizes"], Json::array({256, 128}));
  EXPECT_EQ(desc["to_steps"], Json::array({1, 262144}));
  for (const char *file : {"sg00/PE0.json", "sg00/SP0.json", "sg00/Activation0.json"}) {
    Status status = verifyDmaTable(Json::parse(member(members, file).data), def);
    EXPECT_TRUE(status) << status.error().message();
  }
}

TEST(Neff, DmaTableRules) {
  std::vector<Member> members = membersOf(write(sampleNeff()));
  const Json def = Json::parse(member(members, "sg00/def.json").data);
  const Json sp = Json::parse(member(members, "sg00/SP0.json").data);
  auto failure = [&](const std::function<void(Json &)> &edit) {
    Json json = sp;
    edit(json["dma"][0]);
    Status status = verifyDmaTable(json, def);
    return status ? "no error" : status.error().message();
  };
  EXPECT_EQ(failure([](Json &) {}), "no error");
  EXPECT_THAT(failure([](Json &e) { e["queue"] = "q"; }), HasSubstr("expected a queue of def.json but got 'q'"));
  EXPECT_THAT(failure([](Json &e) { e["id"] = 1; }), HasSubstr("1 is taken"));
  EXPECT_THAT(failure([](Json &e) { e["desc"] = Json::array(); }), HasSubstr("expected descriptors"));
  EXPECT_THAT(failure([](Json &e) { e["desc"][0]["from"] = "nothing"; }), HasSubstr("but got 'nothing'"));
  EXPECT_THAT(failure([](Json &e) { e["desc"][0]["from_sizes"] = {32768}; }), HasSubstr("as many sizes"));
  EXPECT_THAT(failure([](Json &e) { e["desc"][0]["from_sizes"] = {32768, 2}; }), HasSubstr("equal products"));
  EXPECT_THAT(failure([](Json &e) { e["desc"][0]["from_off"] = 4; }), HasSubstr("the transfer takes 4 to 32771"));
  EXPECT_THAT(failure([](Json &e) {
                e["desc"][0]["from_steps"] = {1, 1, 1, 1, 1};
                e["desc"][0]["from_sizes"] = {1, 1, 1, 1, 1};
              }),
              HasSubstr("expected 1 to 4 steps"));
}

TEST(Neff, OtherWritersAreTolerated) {
  const std::vector<uint8_t> good = write(sampleNeff());
  // A payload padded with zeros to a tar block; the hash covers them.
  std::vector<uint8_t> payload(good.begin() + 1024, good.end());
  payload.resize((payload.size() / 10240 + 1) * 10240);
  EXPECT_EQ(readFailure(makeContainer(headerOf(good), payload)), "no error");
  // A data size that counts the header.
  std::vector<uint8_t> bytes = good;
  Header header = headerOf(good);
  header.data_size += 1024;
  std::memcpy(bytes.data(), &header, sizeof(header));
  EXPECT_EQ(readFailure(bytes), "no error");
  // A larger header.
  header = headerOf(good);
  header.header_size = 2048;
  bytes.assign(2048, 0);
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes.insert(bytes.end(), good.begin() + 1024, good.end());
  EXPECT_EQ(readFailure(bytes), "no error");
  // SHA-256 packages.
  header = headerOf(good);
  header.pkg_version = 1;
  EXPECT_EQ(readFailure(makeContainer(header, std::span(good).subspan(1024))), "no error");
  // No logical core size, as in old files; other members and keys; another folder.
  header = headerOf(good);
  header.lnc_size = 0;
  EXPECT_EQ(readFailure(makeContainer(header, std::span(good).subspan(1024))), "no error");
  EXPECT_EQ(readFailure(repack(good, [](std::vector<Member> &m) { m.push_back({"other/file", {1, 2}}); })), "no error");
  EXPECT_EQ(readFailure(editJson(good, "sg00/def.json", [](Json &j) { j["var"]["x"]["other"] = 1; })), "no error");
  EXPECT_EQ(readFailure(repack(good,
                               [](std::vector<Member> &members) {
                                 for (Member &m : members) {
                                   if (m.name.starts_with("sg00/"))
                                     m.name.replace(0, 4, "./graph");
                                   std::string text(m.data.begin(), m.data.end());
                                   if (m.name == "kelf-0.json") {
                                     text.replace(text.find("sg00"), 4, "graph");
                                     m.data.assign(text.begin(), text.end());
                                   }
                                 }
                               })),
            "no error");
  // An engine without a stream.
  Expected<Neff> noPool = readNeff(editJson(good, "sg00/def.json", [](Json &j) {
    j.erase("pool");
    j.erase("pool_instr");
  }));
  ASSERT_TRUE(noPool) << noPool.error().message();
  EXPECT_TRUE(noPool->program[2].empty());
  // Without debug information, instructions must not refer to it; here they do.
  EXPECT_THAT(readFailure(repack(good, [](std::vector<Member> &m) { m.resize(m.size() - 2); })),
              HasSubstr("expected a debug id of at most 0"));
  // A constant as raw bytes.
  EXPECT_EQ(readFailure(repack(editJson(good, "sg00/def.json", [](Json &j) { j["var"]["w"]["file_name"] = "w.raw"; }),
                               [](std::vector<Member> &members) {
                                 Member &m = member(members, "sg00/constant_1.npy");
                                 m.name = "sg00/w.raw";
                                 m.data.erase(m.data.begin(), m.data.end() - 128 * 64 * 4);
                               })),
            "no error");
}

TEST(Neff, ForeignAndDamagedFilesAreRefused) {
  const std::vector<uint8_t> good = write(sampleNeff());
  ErrorKind kind = ErrorKind::Internal;
  // A genuine NEFF of another producer.
  Header header = headerOf(good);
  header.feature_bits = 0x80;
  EXPECT_THAT(readFailure(makeContainer(header, std::span(good).subspan(1024)), &kind),
              HasSubstr("AWS instruction encoding is not public"));
  EXPECT_EQ(kind, ErrorKind::UnsupportedVersion);
  header.feature_bits = kOpenNeuronFeature | 2;
  EXPECT_THAT(readFailure(makeContainer(header, std::span(good).subspan(1024)), &kind),
              HasSubstr("expected no feature bits but bit 47 and got 0x2"));
  EXPECT_EQ(kind, ErrorKind::UnsupportedVersion);
  header = headerOf(good);
  header.neff_version_major = 3;
  EXPECT_THAT(readFailure(makeContainer(header, std::span(good).subspan(1024)), &kind),
              HasSubstr("expected NEFF version"));
  EXPECT_EQ(kind, ErrorKind::UnsupportedVersion);
  header = headerOf(good);
  header.pkg_version = 3;
  EXPECT_THAT(readFailure(makeContainer(header, std::span(good).subspan(1024)), &kind), HasSubstr("package version"));
  EXPECT_EQ(kind, ErrorKind::UnsupportedVersion);
  header = headerOf(good);
  header.lnc_size = 2;
  EXPECT_THAT(readFailure(makeContainer(header, std::span(good).subspan(1024)), &kind), HasSubstr("LNC 1"));
  EXPECT_EQ(kind, ErrorKind::Unsupported);
  // Two subgraphs.
  EXPECT_THAT(readFailure(editJson(good, "kelf-0.json", [](Json &j) { j["graphs"].push_back(j["graphs"][0]); })),
              HasSubstr("expected one subgraph"));
  // A stream that is not ours inside our container.
  EXPECT_THAT(
      readFailure(repack(good, [](std::vector<Member> &m) { member(m, "sg00/DVE0.bin").data = {1, 2, 3}; }), &kind),
      HasSubstr("expected the magic"));
  EXPECT_EQ(kind, ErrorKind::UnsupportedVersion);
  // Flipped payload byte: the hash finds it.
  std::vector<uint8_t> bytes = good;
  bytes[1500] ^= 1;
  EXPECT_THAT(readFailure(bytes, &kind), HasSubstr("expected the payload to have the header's hash"));
  EXPECT_EQ(kind, ErrorKind::InvalidInput);
  // Truncation at every length is an error.
  for (size_t size = 0; size < good.size(); size += size < 1100 ? 1 : 97)
    EXPECT_FALSE(readNeff(std::span(good).first(size))) << size;
}

TEST(Neff, RandomDamageNeverCrashes) {
  std::mt19937_64 random(7);
  const std::vector<uint8_t> good = write(sampleNeff(), false);
  for (int i = 0; i < 3000; ++i) {
    std::vector<uint8_t> bytes = good;
    for (int flips = 1 + int(random() % 3); flips; --flips)
      bytes[random() % bytes.size()] = uint8_t(random());
    // Without the hash, so that the damage reaches the readers of the members.
    Expected<Neff> neff = readNeff(bytes, {.validateHash = false});
    if (neff) {
      EXPECT_TRUE(verifyNeff(*neff));
    }
  }
}

TEST(Neff, InconsistentDefinitionsAreRefused) {
  const std::vector<uint8_t> good = write(sampleNeff());
  auto failure = [&](const std::function<void(Json &)> &edit) {
    return readFailure(editJson(good, "sg00/def.json", edit));
  };
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["var_id"] = 1; }), HasSubstr("is taken"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["var_id"] = 100; }), HasSubstr("0 is missing"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["var_id"] = -1; }),
              HasSubstr("expected 'var_id' to be an integer from 0"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["type"] = "virtual"; }), HasSubstr("but got 'virtual'"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["size"] = 1.5; }), HasSubstr("'size'"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["size"] = uint64_t(1) << 63; }), HasSubstr("'size'"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["alignment"] = 48; }), HasSubstr("power of two"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["size"] = 100; }), HasSubstr("expected at least 8192 elements"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["w"].erase("file_name"); }), HasSubstr("'file_name' but it is missing"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["w"]["file_name"] = "nothing.npy"; }),
              HasSubstr("expected a member 'sg00/nothing.npy'"));
  EXPECT_THAT(failure([](Json &j) { j["dve_instr"] = "nothing"; }), HasSubstr("expected a member 'sg00/nothing'"));
  EXPECT_THAT(failure([](Json &j) { j["dve_instr"] = "SP0.bin"; }), HasSubstr("expected engine id 5 but got 6"));
  EXPECT_THAT(failure([](Json &j) { j.erase("var"); }), HasSubstr("expected variables"));
  EXPECT_THAT(failure([](Json &j) { j.erase("x_open_neuron"); }), HasSubstr("expected 'x_open_neuron'"));
  EXPECT_THAT(failure([](Json &j) { j["x_open_neuron"]["target"] = "trn9"; }), HasSubstr("but got 'trn9'"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x"]["x_open_neuron"]["dtype"] = "f13"; }), HasSubstr("but got 'f13'"));
  EXPECT_THAT(failure([](Json &j) { j["var"]["x.updated"]["x_open_neuron"]["alias_of"] = 1; }),
              HasSubstr("expected to alias a tensor input"));
  EXPECT_THAT(
      readFailure(repack(good, [](std::vector<Member> &m) { member(m, "sg00/constant_1.npy").data.pop_back(); })),
      HasSubstr("expected 32768 bytes of data but got 32767"));
  EXPECT_THAT(readFailure(repack(good, [](std::vector<Member> &m) { m.erase(m.begin()); })),
              HasSubstr("expected a member 'kelf-0.json'"));
  EXPECT_THAT(readFailure(repack(good, [](std::vector<Member> &m) { member(m, "sg00/def.json").data = {'{'}; })),
              HasSubstr("sg00/def.json: expected JSON text"));
  EXPECT_THAT(readFailure(editJson(good, "x_open_neuron/sg00.debug.json", [](Json &j) { j["records"][0][0] = 99; })),
              HasSubstr("expected record 0"));
}

TEST(Neff, WriterRefusesWhatReadersWould) {
  Neff neff = sampleNeff();
  neff.variables[kX].name = "out";
  EXPECT_THAT(writeFailure(neff), HasSubstr("expected a name of its own"));
  neff = sampleNeff();
  neff.variables[kRng].bytes = 8;
  EXPECT_THAT(writeFailure(neff), HasSubstr("variable 6 'rng'"));
  neff = sampleNeff();
  neff.variables[kParameters].bytes = 20;
  EXPECT_THAT(writeFailure(neff), HasSubstr("expected parameters of 16 bytes each"));
  neff = sampleNeff();
  neff.metricsJson = "{";
  EXPECT_THAT(writeFailure(neff), HasSubstr("metrics.json: expected JSON text"));
  neff = sampleNeff();
  neff.variables[kX].name = "\xff";
  EXPECT_THAT(writeFailure(neff), HasSubstr("UTF-8"));
  neff = sampleNeff();
  neff.target = "inf1";
  EXPECT_THAT(writeFailure(neff), HasSubstr("but got 'inf1'"));
  neff = sampleNeff();
  neff.program[3][0].tiles[0].numPartitions = 129;
  EXPECT_THAT(writeFailure(neff), HasSubstr("vector instruction 0 (tensor_tensor): operand_c1"));
  neff = sampleNeff();
  neff.variables[kXUpdated].aliasOf = kOut;
  EXPECT_THAT(writeFailure(neff), HasSubstr("expected to alias a tensor input"));
}

TEST(Neff, VariableNamedLikeTheStateBuffer) {
  Neff neff = sampleNeff();
  neff.variables[kScratch].name = "SB";
  Expected<Neff> read = readNeff(write(neff));
  ASSERT_TRUE(read) << read.error().message();
  expectEqual(neff, *read);
}

TEST(Neff, UnpackedSizeIsBounded) {
  Neff neff = sampleNeff();
  neff.variables[kW].bytes = 1 << 24;
  neff.variables[kW].shape = {128, 32768};
  neff.variables[kW].data.assign(1 << 24, 0);
  std::vector<uint8_t> bytes = write(neff);
  EXPECT_LT(bytes.size(), size_t(1) << 17);
  EXPECT_TRUE(readNeff(bytes));
  Expected<Neff> read = readNeff(bytes, {.maxUnpackedBytes = 1 << 20});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind(), ErrorKind::OutOfMemory);
}
