import Foundation
import Testing

@testable import GraphQLClient

struct CombiningMarksTests {
  private static func areReadable(_ text: String) -> Bool {
    CombiningMarks.areReadable(in: Data(text.utf8))
  }

  /// Marks of two, three and four bytes in UTF-8, from several combining classes.
  private static let marks: [Unicode.Scalar] = ["\u{301}", "\u{316}", "\u{20D0}", "\u{1D165}"]

  private static func run(of mark: Unicode.Scalar, _ count: Int) -> String {
    String(String.UnicodeScalarView(repeatElement(mark, count: count)))
  }

  private static func escaped(_ mark: Unicode.Scalar, _ count: Int) -> String {
    let units = String(mark).utf16.map { unit in
      "\\u" + String(repeating: "0", count: 4 - String(unit, radix: 16).count) + String(unit, radix: 16)
    }
    return String(repeating: units.joined(), count: count)
  }

  @Test(arguments: marks)
  func `A run may have at most 256 marks, literal or escaped`(mark: Unicode.Scalar) {
    for text in [Self.run(of:_:), Self.escaped(_:_:)] {
      #expect(Self.areReadable(text(mark, 256)))
      #expect(!Self.areReadable(text(mark, 257)))
      #expect(Self.areReadable(text(mark, 256) + "a" + text(mark, 256)))
      #expect(!Self.areReadable("a" + text(mark, 256) + text(mark, 1)))
    }
  }

  @Test func `Literal and escaped marks form one run`() {
    let spellings = Self.marks.map { Self.run(of: $0, 32) + Self.escaped($0, 32) }.joined()
    #expect(Self.areReadable(spellings))
    #expect(!Self.areReadable(spellings + "\u{301}"))
    #expect(!Self.areReadable("\\u0301" + spellings))
  }

  @Test(arguments: [
    "", "a", "没有 👨‍👩‍👧‍👦", "e\u{301}", "\\", "\\u", "\\u12", "\\uZZZZ", "\\uD800", "\\uDC00", "\\uD834\\u0041",
    "\\n\\\\u0301",
  ])
  func `Text without long runs of marks is accepted`(text: String) {
    #expect(Self.areReadable(text))
    #expect(Self.areReadable(String(repeating: text, count: 300)))
  }

  @Test func `Invalid UTF-8 passes the check, because the decoder rejects it later`() {
    for bytes in [[0xC3], [0xE0, 0x80], [0xF0, 0x9D], [0xFF, 0xFE], [0x80, 0x80]] as [[UInt8]] {
      #expect(CombiningMarks.areReadable(in: Data(bytes)))
      #expect(CombiningMarks.areReadable(in: Data(Array(repeating: bytes, count: 300).joined())))
    }
  }

  @Test func `Many runs of the maximum length are accepted and decoded`() throws {
    // If these 102,400 marks were a single run, they would take seconds to decode.
    let run = String(repeating: "\u{301}\u{316}", count: 128)
    let text = Array(repeating: "a" + run, count: 400).joined()
    let json = Data(#"{"\#(text)":1}"#.utf8)
    #expect(CombiningMarks.areReadable(in: json))
    #expect(try JSONDecoder().decode([String: Int].self, from: json).count == 1)
  }
}
