import Foundation
import Testing

@testable import GraphQLClient

struct CombiningMarksTests {
  private static func separated(_ text: String) -> String {
    String(decoding: CombiningMarks.separated(in: Data(text.utf8)), as: UTF8.self)
  }

  private static func marksAreWithinLimit(in text: String) -> Bool {
    separated(text).utf8.elementsEqual(text.utf8)
  }

  /// Marks of two, three and four bytes in UTF-8, from several combining classes.
  private static let marks: [Unicode.Scalar] = ["\u{301}", "\u{316}", "\u{20D0}", "\u{1D165}"]

  private static func literalRun(of mark: Unicode.Scalar, _ count: Int) -> String {
    String(String.UnicodeScalarView(repeatElement(mark, count: count)))
  }

  private static func escapedRun(of mark: Unicode.Scalar, _ count: Int) -> String {
    let units = String(mark).utf16.map { unit in
      "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count) + String(unit, radix: 16)
    }
    return String(repeating: units.joined(), count: count)
  }

  @Test(arguments: marks)
  func `A run may have at most 256 marks, literal or escaped`(mark: Unicode.Scalar) {
    for makeRun in [Self.literalRun(of:_:), Self.escapedRun(of:_:)] {
      #expect(Self.marksAreWithinLimit(in: makeRun(mark, 256)))
      #expect(!Self.marksAreWithinLimit(in: makeRun(mark, 257)))
      #expect(Self.marksAreWithinLimit(in: makeRun(mark, 256) + "a" + makeRun(mark, 256)))
      #expect(!Self.marksAreWithinLimit(in: "a" + makeRun(mark, 256) + makeRun(mark, 1)))
    }
  }

  @Test(arguments: marks)
  func `A longer run is separated into runs of 256 marks`(mark: Unicode.Scalar) {
    for makeRun in [Self.literalRun(of:_:), Self.escapedRun(of:_:)] {
      let separated = Self.separated(#"{"a":"x"# + makeRun(mark, 600) + #"","b":""# + makeRun(mark, 257) + #""}"#)
      let runs = [makeRun(mark, 256), makeRun(mark, 256), makeRun(mark, 88)].joined(separator: "\u{FFFD}")
      let expected = #"{"a":"x"# + runs + #"","b":""# + makeRun(mark, 256) + "\u{FFFD}" + makeRun(mark, 1) + #""}"#
      #expect(separated.utf8.elementsEqual(expected.utf8))
    }
  }

  @Test func `Literal and escaped marks form one run`() {
    // The run has the maximum length of 256 marks: 64 of each of the four.
    let longestRun = Self.marks.map { Self.literalRun(of: $0, 32) + Self.escapedRun(of: $0, 32) }.joined()
    #expect(Self.marksAreWithinLimit(in: longestRun))
    #expect(!Self.marksAreWithinLimit(in: longestRun + "\u{301}"))
    #expect(!Self.marksAreWithinLimit(in: "\\u0301" + longestRun))
  }

  // The last text has an escaped backslash before “u0301”, so it contains no escaped mark.
  @Test(arguments: [
    "", "a", "没有 👨‍👩‍👧‍👦", "e\u{301}", "\\", "\\u", "\\u12", "\\uZZZZ", "\\uD800", "\\uDC00", "\\uD834\\u0041",
    "\\n\\\\u0301",
  ])
  func `Text without long runs of marks is accepted`(text: String) {
    #expect(Self.marksAreWithinLimit(in: text))
    #expect(Self.marksAreWithinLimit(in: String(repeating: text, count: 300)))
  }

  @Test func `Invalid UTF-8 passes the check, because the decoder rejects it later`() {
    for bytes in [[0xC3], [0xE0, 0x80], [0xF0, 0x9D], [0xFF, 0xFE], [0x80, 0x80]] as [[UInt8]] {
      #expect(CombiningMarks.separated(in: Data(bytes)) == Data(bytes))
      let manyBytes = Data(Array(repeating: bytes, count: 300).joined())
      #expect(CombiningMarks.separated(in: manyBytes) == manyBytes)
    }
  }

  @Test func `Many runs of the maximum length are accepted and decoded`() throws {
    // If these 102,400 marks were a single run, they would take seconds to decode.
    let run = String(repeating: "\u{301}\u{316}", count: 128)
    let text = Array(repeating: "a" + run, count: 400).joined()
    let json = Data(#"{"\#(text)":1}"#.utf8)
    #expect(CombiningMarks.separated(in: json) == json)
    #expect(try JSONDecoder().decode([String: Int].self, from: json).count == 1)
  }
}
