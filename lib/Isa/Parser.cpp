// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text to programs. A line is parsed into an instruction whose label references are resolved at the end of its stream.

#include <charconv>
#include <limits>
#include <unordered_map>

#include "Encoding.h"
#include "FieldNames.h"
#include "Lexer.h"
#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Isa/Verify.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

namespace {

Error invalid(std::string message) { return Error(ErrorKind::InvalidInput, std::move(message)); }

/// One line of a stream.
class LineParser {
public:
  explicit LineParser(std::string_view line) : lexer_(line) {}

  Status run() {
    std::string_view name = lexer_.word();
    if (!parseOpcode(name, in_.opcode))
      return invalid(cat("expected an instruction but got '", name.empty() ? lexer_.rest() : name, "'"));
    info_ = &instructionInfo(in_.opcode);
    while (error_.empty() && !lexer_.atEnd()) {
      item();
      if (error_.empty() && !lexer_.atEnd())
        expect(",");
    }
    return error_.empty() ? Status::success() : Status(invalid(error_));
  }

  const Instruction &instruction() const { return in_; }
  std::string_view label() const { return label_; }

private:
  void fail(std::string message) {
    if (error_.empty())
      error_ = cat(message, lexer_.atEnd() ? std::string(" at the end of the line") : cat(" at '", lexer_.rest(), "'"));
  }

  void expect(std::string_view token) {
    if (error_.empty() && !lexer_.accept(token))
      fail(cat("expected '", token, "'"));
  }

  template <typename T>
  T integer(int64_t low = std::numeric_limits<T>::min(), uint64_t high = uint64_t(std::numeric_limits<T>::max())) {
    if (!error_.empty())
      return T(0);
    Lexer before = lexer_;
    std::string_view text = lexer_.number();
    bool negative = text.starts_with("-");
    std::string_view digits = text.substr(negative);
    bool isHex = digits.starts_with("0x");
    uint64_t magnitude = 0;
    const char *begin = digits.data() + (isHex ? 2 : 0), *end = digits.data() + digits.size();
    auto [next, code] = std::from_chars(begin, end, magnitude, isHex ? 16 : 10);
    bool fits = code == std::errc() && next == end && begin != end &&
                (negative ? low < 0 && magnitude <= uint64_t(0) - uint64_t(low) : magnitude <= high);
    if (fits)
      return T(negative ? uint64_t(0) - magnitude : magnitude);
    lexer_ = before;
    fail(cat("expected an integer from ", low, " to ", high));
    return T(0);
  }

  uint8_t registerNumber() {
    if (error_.empty() && !lexer_.peek("r"))
      fail("expected a register");
    if (!error_.empty())
      return 0;
    std::string_view name = lexer_.word();
    unsigned number = 0;
    auto [next, code] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (code != std::errc() || next != name.data() + name.size() || number >= kNumRegisters)
      fail(cat("expected a register r0 to r", kNumRegisters - 1, " but got '", name, "'"));
    return uint8_t(number);
  }

  bool atRegister() const {
    std::string_view rest = lexer_.rest();
    return rest.size() > 1 && rest[0] == 'r' && rest[1] >= '0' && rest[1] <= '9';
  }

  /// "+ 5" or "- 5"; 0 if neither follows.
  int64_t signedOffset(int64_t low, int64_t high) {
    bool negative = lexer_.peek("-");
    if (!lexer_.accept("+") && !lexer_.accept("-"))
      return 0;
    auto magnitude = integer<uint64_t>(0, negative ? uint64_t(0) - uint64_t(low) : uint64_t(high));
    return int64_t(negative ? uint64_t(0) - magnitude : magnitude);
  }

  template <typename Names> uint8_t nameIn(const Names &names) {
    std::string_view word = lexer_.word();
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == word)
        return uint8_t(i);
    std::string all;
    for (std::string_view name : names)
      all += cat(all.empty() ? "" : ", ", name);
    fail(cat("expected one of ", all, " but got '", word, "'"));
    return 0;
  }

  // -- items

  void item() {
    std::string_view key = lexer_.word();
    if (key.empty())
      return fail("expected an operand or a field");
    if (lexer_.accept("(")) {
      if (key == "wait")
        return waits();
      if (key == "update")
        return update();
      return fail(cat("expected wait or update but got '", key, "'"));
    }
    for (const auto &[name, member] : kFlagNames)
      if (key == name) {
        in_.*member = true;
        return;
      }
    expect("=");
    for (int i = 0; i < info_->numTiles; ++i)
      if (info_->tiles[i].name == key)
        return operand(i);
    for (int i = 0; i < info_->numScalars; ++i)
      if (info_->scalars[i] == key)
        return scalar(in_.scalars[i]);
    field(key);
  }

  void field(std::string_view key) {
    for (const auto &[name, member] : kRegisterNames)
      if (key == name) {
        in_.*member = registerNumber();
        return;
      }
    if (key == "op0" || key == "op1") {
      std::string_view word = lexer_.word();
      if (!parseAluOp(word, key == "op0" ? in_.op0 : in_.op1))
        fail(cat("expected an operator but got '", word, "'"));
    } else if (key == "axes") {
      in_.axes = integer<uint8_t>();
    } else if (key == "function") {
      std::string_view word = lexer_.word();
      if (!parseActivationFunction(word, in_.function))
        fail(cat("expected an activation function but got '", word, "'"));
    } else if (key == "reduce_command") {
      in_.reduceCommand = ReduceCommand(nameIn(kReduceCommandNames));
    } else if (key == "dge_mode") {
      in_.dgeMode = DgeMode(nameIn(kDgeModeNames));
    } else if (key == "oob_mode") {
      in_.oobMode = OutOfBoundsMode(nameIn(kOobModeNames));
    } else if (key == "queue") {
      in_.queue = integer<uint8_t>();
    } else if (key == "routine") {
      std::string_view word = lexer_.word();
      if (!parseRoutine(word, in_.routine))
        fail(cat("expected a routine but got '", word, "'"));
    } else if (key == "routine_function") {
      routineFunction();
    } else if (key == "mask") {
      mask();
    } else if (key == "immediates") {
      immediates();
    } else if (key == "immediate") {
      in_.immediate = integer<int32_t>();
    } else if (key == "target") {
      if (in_.opcode == Opcode::Branch || in_.opcode == Opcode::Call)
        label_ = lexer_.word();
      else
        in_.target = integer<uint32_t>();
    } else if (key == "debug") {
      in_.debugId = integer<uint32_t>();
    } else {
      fail(cat("expected an operand or a field of ", info_->name, " but got '", key, "'"));
    }
  }

  void routineFunction() {
    if (lexer_.rest().empty() || (lexer_.rest()[0] >= '0' && lexer_.rest()[0] <= '9')) {
      in_.routineFunction = integer<uint8_t>();
      return;
    }
    std::string_view word = lexer_.word();
    if (in_.routine != Routine::None)
      for (const RoutineFunctionInfo &function : routineInfo(in_.routine).functions)
        if (function.name == word) {
          in_.routineFunction = function.code;
          return;
        }
    fail(cat("expected a function of routine ", toString(in_.routine), " but got '", word, "'"));
  }

  void mask() {
    expect("[");
    for (int i = 0; i < 32 && error_.empty(); ++i) {
      if (i)
        expect(",");
      in_.immediates[i / 8] |= int64_t(uint64_t(integer<uint8_t>()) << (8 * (i % 8)));
    }
    expect("]");
  }

  void immediates() {
    expect("[");
    for (size_t i = 0; i < in_.immediates.size() && error_.empty(); ++i) {
      if (i && !lexer_.accept(","))
        break;
      in_.immediates[i] = integer<int64_t>();
    }
    expect("]");
  }

  std::pair<uint8_t, uint8_t> semaphore() {
    expect("S");
    expect("[");
    uint8_t block = kZeroRegister;
    if (atRegister()) {
      block = registerNumber();
      expect("+");
    }
    auto number = integer<uint8_t>();
    expect("]");
    return {number, block};
  }

  void waits() {
    do {
      if (in_.numWaits == kMaxWaits)
        return fail(cat("expected at most ", kMaxWaits, " waits"));
      Wait &wait = in_.waits[in_.numWaits++];
      std::tie(wait.semaphore, wait.blockRegister) = semaphore();
      wait.equal = lexer_.accept("==");
      if (!wait.equal)
        expect(">=");
      if (atRegister()) {
        wait.valueRegister = registerNumber();
        wait.immediate = int32_t(signedOffset(INT32_MIN, INT32_MAX));
      } else {
        wait.immediate = integer<int32_t>();
      }
    } while (error_.empty() && lexer_.accept(","));
    expect(")");
  }

  void update() {
    Update &update = in_.update;
    std::tie(update.semaphore, update.blockRegister) = semaphore();
    if (lexer_.accept("++")) {
      update.op = UpdateOp::Increment;
    } else if (lexer_.accept("--")) {
      update.op = UpdateOp::Decrement;
    } else {
      update.op = lexer_.accept("+=")   ? UpdateOp::AddImmediate
                  : lexer_.accept("-=") ? UpdateOp::SubtractImmediate
                                        : UpdateOp::Write;
      if (update.op == UpdateOp::Write)
        expect("=");
      update.value = integer<uint8_t>();
    }
    expect(")");
  }

  void scalar(ScalarOperand &scalar) {
    for (MemorySpace space : {MemorySpace::Sbuf, MemorySpace::Psum})
      if (lexer_.accept(space == MemorySpace::Sbuf ? "sbuf" : "psum")) {
        expect("@");
        scalar = ScalarOperand::vector(space, integer<uint32_t>());
        return;
      }
    if (lexer_.peek("0x")) {
      scalar = ScalarOperand::constantBits(integer<uint32_t>());
      return;
    }
    std::string_view text = lexer_.number();
    float value = 0;
    auto [next, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || next != text.data() + text.size() || text.empty())
      fail(cat("expected a number, bits 0x.. or a vector but got '", text, "'"));
    scalar = ScalarOperand::constant(value);
  }

  void operand(int i) {
    TilePattern &tile = in_.tiles[i];
    if (tile.present())
      return fail(cat("expected operand ", info_->tiles[i].name, " once"));
    if (lexer_.accept("hbm")) {
      tile.space = MemorySpace::Hbm;
      return hbm(in_.hbm[encoding::hbmIndex(in_.opcode, i)]);
    }
    if (lexer_.accept("sbuf"))
      tile.space = MemorySpace::Sbuf;
    else if (lexer_.accept("psum"))
      tile.space = MemorySpace::Psum;
    else
      return fail("expected sbuf, psum or hbm");
    expect("[");
    tile.startPartition = integer<uint8_t>();
    expect(":");
    auto end = integer<uint16_t>(0, 510);
    if (error_.empty() && (end < tile.startPartition || end - tile.startPartition > 255))
      fail("expected partitions first:end");
    tile.numPartitions = uint8_t(end - tile.startPartition);
    expect(",");
    tile.byteOffset = integer<uint32_t>();
    std::array<std::pair<int16_t, uint16_t>, kMaxFreeDims> dims;
    int numDims = 0;
    while (error_.empty() && lexer_.accept("+")) {
      if (numDims == kMaxFreeDims)
        return fail(cat("expected at most ", kMaxFreeDims, " dimensions"));
      dims[numDims].first = integer<int16_t>();
      expect("*");
      dims[numDims++].second = integer<uint16_t>();
    }
    for (int k = 0; k < numDims; ++k) {
      tile.step[kMaxFreeDims - numDims + k] = dims[k].first;
      tile.count[kMaxFreeDims - numDims + k] = dims[k].second;
    }
    expect("]");
    tile.dtype = dtype();
  }

  Dtype dtype() {
    Dtype value = Dtype::None;
    std::string_view word = lexer_.word();
    if (error_.empty() && (!parseDtype(word, value) || value == Dtype::None))
      fail(cat("expected a dtype but got '", word, "'"));
    return value;
  }

  void hbm(HbmPattern &pattern) {
    expect("[");
    if (lexer_.accept("param")) {
      expect("[");
      pattern.variable = uint16_t(kParameterFlag | integer<uint16_t>(0, kParameterFlag - 1));
      expect("]");
    } else {
      pattern.variable = variable();
    }
    terms(pattern);
    if (lexer_.accept(","))
      hbmDims(pattern);
    expect("]");
    pattern.dtype = dtype();
  }

  uint16_t variable() {
    std::string_view name = lexer_.word();
    unsigned number = 0;
    if (!name.empty()) {
      auto [next, code] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
      if (name[0] != 'v' || code != std::errc() || next != name.data() + name.size())
        number = kParameterFlag;
    }
    if (error_.empty() && (name.empty() || number >= kParameterFlag))
      fail(cat("expected a variable v0 to v", kParameterFlag - 1, " or a parameter but got '", name, "'"));
    return uint16_t(number);
  }

  void terms(HbmPattern &pattern) {
    int numTerms = 0;
    bool first = true;
    while (error_.empty() && (lexer_.peek("+") || lexer_.peek("-"))) {
      // A byte offset, if any, comes before the terms.
      Lexer before = lexer_;
      bool plus = lexer_.accept("+");
      if (!plus || !atRegister()) {
        lexer_ = before;
        if (!first)
          return fail("expected a term: a register times a stride");
        pattern.byteOffset = signedOffset(INT64_MIN, INT64_MAX);
      } else {
        if (numTerms == kMaxHbmTerms)
          return fail(cat("expected at most ", kMaxHbmTerms, " terms"));
        pattern.terms[numTerms].reg = registerNumber();
        expect("*");
        pattern.terms[numTerms++].stride = integer<int64_t>();
      }
      first = false;
    }
  }

  void hbmDims(HbmPattern &pattern) {
    struct Dim {
      int64_t step = 0;
      uint32_t count = 1;
      uint8_t stepRegister = 0, countRegister = 0;
    };
    std::array<Dim, kMaxHbmDims> dims;
    int numDims = 0;
    do {
      if (numDims == kMaxHbmDims)
        return fail(cat("expected at most ", kMaxHbmDims, " dimensions"));
      Dim &dim = dims[numDims++];
      if (atRegister()) {
        dim.stepRegister = registerNumber();
        expect("*");
      }
      dim.step = integer<int64_t>();
      expect("*");
      dim.count = integer<uint32_t>();
      if (lexer_.accept("(")) {
        dim.countRegister = registerNumber();
        expect(")");
      }
    } while (error_.empty() && lexer_.accept("+"));
    for (int k = 0; k < numDims; ++k) {
      int at = kMaxHbmDims - numDims + k;
      pattern.step[at] = dims[k].step;
      pattern.count[at] = dims[k].count;
      pattern.stepRegister[at] = dims[k].stepRegister;
      pattern.countRegister[at] = dims[k].countRegister;
    }
  }

  Lexer lexer_;
  Instruction in_;
  const InstructionInfo *info_ = nullptr;
  std::string_view label_;
  std::string error_;
};

class ProgramParser {
public:
  explicit ProgramParser(std::string_view text) : text_(text) {}

  Expected<Program> run() {
    while (!text_.empty()) {
      ++line_;
      std::string_view line = text_.substr(0, text_.find('\n'));
      text_.remove_prefix(std::min(line.size() + 1, text_.size()));
      if (Status status = statement(line.substr(0, line.find("//"))); !status)
        return status.error().withContext(cat("line ", line_));
    }
    if (stream_ >= 0)
      return invalid(cat("line ", line_, ": expected '}' at the end of the stream"));
    return std::move(program_);
  }

private:
  static std::string_view trim(std::string_view text) {
    size_t begin = text.find_first_not_of(" \t\r");
    if (begin == text.npos)
      return {};
    return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
  }

  Status statement(std::string_view line) {
    line = trim(line);
    if (line.empty())
      return Status::success();
    if (stream_ < 0)
      return beginStream(line);
    if (line == "}")
      return endStream();
    if (line.ends_with(":"))
      return label(line.substr(0, line.size() - 1));
    LineParser parser(line);
    if (Status status = parser.run(); !status)
      return status;
    if (Status status = verifyForm(kStreamEngines[stream_], parser.instruction()); !status)
      return status;
    bool jumps = parser.instruction().opcode == Opcode::Branch || parser.instruction().opcode == Opcode::Call;
    if (jumps && parser.label().empty())
      return invalid("expected a target label");
    if (jumps)
      references_.push_back({program_[stream_].size(), std::string(parser.label()), line_});
    program_[stream_].push_back(parser.instruction());
    return Status::success();
  }

  Status beginStream(std::string_view line) {
    Lexer lexer(line);
    Engine engine = Engine::Unknown;
    if (!lexer.accept("stream") || !parseEngine(lexer.word(), engine) || streamIndex(engine) < 0 || !lexer.accept("{"))
      return invalid(cat("expected 'stream <engine> {' but got '", line, "'"));
    stream_ = streamIndex(engine);
    if (seen_[stream_])
      return invalid(cat("expected each stream once but ", toString(engine), " begins again"));
    seen_[stream_] = true;
    if (lexer.accept("}"))
      return endStream();
    if (!lexer.atEnd())
      return invalid(cat("expected the end of the line but got '", lexer.rest(), "'"));
    return Status::success();
  }

  Status label(std::string_view name) {
    Lexer lexer(name);
    if (lexer.word() != name)
      return invalid(cat("expected a label but got '", name, "'"));
    if (!labels_.emplace(std::string(name), uint32_t(program_[stream_].size())).second)
      return invalid(cat("expected each label once but '", name, "' stands here again"));
    return Status::success();
  }

  Status endStream() {
    for (const Reference &reference : references_) {
      auto found = labels_.find(reference.label);
      if (found == labels_.end())
        return invalid(
            cat("expected label '", reference.label, "', used in line ", reference.line, ", in this stream"));
      program_[stream_][reference.instruction].target = found->second;
    }
    Status status = verifyTargets(kStreamEngines[stream_], program_[stream_]);
    references_.clear();
    labels_.clear();
    stream_ = -1;
    return status;
  }

  struct Reference {
    size_t instruction;
    std::string label;
    int line;
  };

  std::string_view text_;
  int line_ = 0;
  int stream_ = -1;
  std::array<bool, kNumStreams> seen_ = {};
  Program program_;
  std::unordered_map<std::string, uint32_t> labels_;
  std::vector<Reference> references_;
};

} // namespace

Expected<Program> parseProgram(std::string_view text) { return ProgramParser(text).run(); }

} // namespace neuroncore::isa
