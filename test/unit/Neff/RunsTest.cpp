// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parameters and the table of runs: round trips, and refusal of tables that do not fit the variables.

#include <cstring>
#include <functional>
#include <iterator>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "SampleNeff.h"
#include "lib/Neff/Json.h"
#include "neuron/Neff/Container.h"

using namespace neuroncore;
using namespace neuroncore::neff;
using namespace neuroncore::isa;
using testing::HasSubstr;

namespace {

std::string failure(const std::function<void(Neff &)> &change) {
  Neff neff = sampleRuns();
  change(neff);
  Status status = verifyNeff(neff);
  return status ? "no error" : status.error().message();
}

std::vector<uint8_t> write(const Neff &neff) {
  Expected<std::vector<uint8_t>> bytes = writeNeff(neff);
  if (!bytes)
    ADD_FAILURE() << bytes.error().message();
  return bytes ? *bytes : std::vector<uint8_t>();
}

/// The error of reading with the extension of def.json changed.
std::string readFailure(const std::function<void(Json &)> &edit) {
  std::vector<uint8_t> bytes = write(sampleRuns());
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<Member> members = *unpackMembers(std::span(bytes).subspan(1024), 1 << 30);
  for (Member &member : members)
    if (member.name == "sg00/def.json") {
      Json json = Json::parse(member.data);
      edit(json["x_open_neuron"]);
      std::string text = json.dump();
      member.data.assign(text.begin(), text.end());
    }
  Expected<Neff> neff = readNeff(makeContainer(header, *packMembers(members, true)));
  return neff ? "no error" : neff.error().message();
}

} // namespace

TEST(RunTable, RoundTrip) {
  Neff neff = sampleRuns();
  Expected<Neff> read = readNeff(write(neff));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->parameterBytes, neff.parameterBytes);
  ASSERT_EQ(read->runs.size(), neff.runs.size());
  for (size_t i = 0; i < neff.runs.size(); ++i) {
    EXPECT_EQ(read->runs[i].firstParameter, neff.runs[i].firstParameter);
    EXPECT_EQ(read->runs[i].variables, neff.runs[i].variables);
  }
  EXPECT_EQ(read->program[4][0].hbm[1].variable, kParameterFlag);
}

TEST(RunTable, OneRunHasNoTable) {
  std::vector<uint8_t> bytes = write(sampleNeff());
  const std::vector<Member> members = *unpackMembers(std::span(bytes).subspan(1024), 1 << 30);
  for (const Member &member : members)
    if (member.name == "sg00/def.json") {
      Json json = Json::parse(member.data)["x_open_neuron"];
      EXPECT_FALSE(json.contains("runs"));
      EXPECT_FALSE(json.contains("parameter_bytes"));
    }
}

TEST(RunTable, OperandsStandForVariables) {
  Neff neff = sampleRuns();
  EXPECT_EQ(boundVariable(neff, kW, 7), kW);
  EXPECT_EQ(boundVariable(neff, kParameterFlag | 1, 0), kOut);
  EXPECT_EQ(boundVariable(neff, kParameterFlag | 1, 1), kXUpdated);
  EXPECT_EQ(boundVariable(neff, kParameterFlag | 1, 2), -1); // below the first of the run
  EXPECT_EQ(boundVariable(neff, kParameterFlag | 2, 0), -1); // behind its last
  EXPECT_EQ(boundVariable(neff, kParameterFlag | 0, 3), -1);
  EXPECT_EQ(boundVariable(neff, kParameterFlag | 0, -1), -1);
  EXPECT_EQ(operandBytes(neff, kParameterFlag | 2), 16);
  EXPECT_EQ(operandBytes(neff, kScratch), 1 << 20);
  EXPECT_EQ(describeOperand(neff, kParameterFlag | 1, 1), "variable 'x.updated' (parameter 1 in run 1)");
  EXPECT_EQ(describeOperand(neff, kX, 1), "variable 'x'");
}

TEST(RunTable, BindingsFitTheirParameters) {
  EXPECT_EQ(failure([](Neff &) {}), "no error");
  EXPECT_EQ(failure([](Neff &neff) { neff.runs[0].firstParameter = 2; }),
            "run 0: expected to bind parameters below 3 but got 2 from 2 on");
  EXPECT_THAT(failure([](Neff &neff) { neff.runs[0].firstParameter = UINT32_MAX; }),
              HasSubstr("expected to bind parameters below 3 but got 2 from 4294967295 on"));
  EXPECT_EQ(failure([](Neff &neff) { neff.runs[1].variables[0] = 7; }),
            "run 1: expected to bind parameter 0 to a variable below 7 but got 7");
  EXPECT_EQ(failure([](Neff &neff) {
              neff.runs[2].variables[0] = kRng;
              neff.parameterBytes[2] = 17;
            }),
            "run 1: expected a variable of at least 17 bytes for parameter 2 but 'rng' has 16");
  EXPECT_EQ(failure([](Neff &neff) { neff.parameterBytes[2] = -1; }),
            "parameter 2: expected a size of at least 0 but got -1");
  EXPECT_THAT(failure([](Neff &neff) { neff.parameterBytes.resize(kParameterFlag + 1); }),
              HasSubstr("expected at most 32768 parameters but got 32769"));
}

TEST(RunTable, AccessesFitTheirParameters) {
  EXPECT_THAT(failure([](Neff &neff) { neff.program[4][0].hbm[1].variable = kParameterFlag | 3; }),
              HasSubstr("src: expected a parameter below 3 but got 3"));
  EXPECT_THAT(failure([](Neff &neff) {
                neff.parameterBytes.push_back(32768);
                neff.program[4][0].hbm[1].variable = kParameterFlag | 3;
              }),
              HasSubstr("expected a parameter that some run binds but got 3"));
  // The variables are large enough, the parameter says less.
  EXPECT_THAT(failure([](Neff &neff) { neff.parameterBytes[0] = 32764; }),
              HasSubstr("src: expected bytes 0 to 32764 of parameter 0 but the access takes 0 to 32768"));
  EXPECT_THAT(failure([](Neff &neff) { neff.runs[0].variables[1] = kW; }),
              HasSubstr("'w', to which a run binds the parameter, is a constant"));
  EXPECT_EQ(failure([](Neff &neff) { neff.runs[0].variables[1] = kX; }), "no error"); // an output aliases it
  EXPECT_THAT(failure([](Neff &neff) { neff.runs.clear(); }), HasSubstr("expected a parameter that some run binds"));
}

TEST(RunTable, DamagedTablesAreRefused) {
  EXPECT_EQ(readFailure([](Json &) {}), "no error");
  EXPECT_THAT(readFailure([](Json &json) { json["runs"] = 3; }), HasSubstr("expected 'runs' to be an array"));
  EXPECT_THAT(readFailure([](Json &json) { json["runs"][1] = "x"; }), HasSubstr("run 1: expected a JSON object"));
  EXPECT_THAT(readFailure([](Json &json) { json["runs"][1]["variables"] = "x"; }),
              HasSubstr("run 1: expected 'variables' to be an array"));
  EXPECT_THAT(readFailure([](Json &json) { json["runs"][1]["variables"][0] = -1; }),
              HasSubstr("run 1: expected 'variables' to be an integer from 0 to 65535"));
  EXPECT_THAT(readFailure([](Json &json) { json["runs"][1]["variables"][0] = 1e3; }),
              HasSubstr("expected 'variables' to be an integer"));
  EXPECT_THAT(readFailure([](Json &json) { json["runs"][1]["first_parameter"] = uint64_t(1) << 63; }),
              HasSubstr("expected 'first_parameter' to be an integer from 0 to 32768"));
  EXPECT_THAT(readFailure([](Json &json) { json["parameter_bytes"][0] = -5; }),
              HasSubstr("expected 'parameter_bytes' to be an integer from 0"));
  EXPECT_THAT(readFailure([](Json &json) { json.erase("parameter_bytes"); }),
              HasSubstr("expected to bind parameters below 0"));
  EXPECT_THAT(readFailure([](Json &json) { json.erase("runs"); }),
              HasSubstr("expected a parameter that some run binds"));
}

/// Any values in the place of those of the table: an error, or a program that holds what readNeff promises.
TEST(RunTable, RandomDamageNeverPasses) {
  std::mt19937_64 random(11);
  auto value = [&]() -> Json {
    switch (random() % 8) {
    case 0:
      return nullptr;
    case 1:
      return Json::array({uint64_t(random() % 8)});
    case 2:
      return {{"first_parameter", random() % 4}, {"variables", Json::array({random() % 8})}};
    case 3:
      return int64_t(random());
    case 4:
      return uint64_t(1) << random() % 64;
    case 5:
      return 0.5;
    default:
      return uint64_t(random() % 8);
    }
  };
  int accepted = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string error = readFailure([&](Json &json) {
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        // Any place in the tree below the two keys.
        Json *place = &json[random() % 2 ? "runs" : "parameter_bytes"];
        while (place->is_structured() && !place->empty() && random() % 4 != 0) {
          auto child = place->begin();
          std::advance(child, random() % place->size());
          place = &*child;
        }
        *place = value();
      }
    });
    (error == "no error" ? accepted : refused) += 1;
  }
  // readFailure() reads through verifyNeff.
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 100);
}
