import Foundation
import Testing

@testable import GraphQLClient

struct JSONRepairTests {
  private static func repaired(_ bytes: [UInt8]) -> [UInt8] { Array(JSONRepair.repaired(Data(bytes))) }

  private static func repaired(_ text: String) -> String {
    String(decoding: JSONRepair.repaired(Data(text.utf8)), as: UTF8.self)
  }

  /// Returns a JSON array of one string with the given bytes.
  private static func json(_ bytes: [UInt8]) -> [UInt8] { Array("[\"".utf8) + bytes + Array("\"]".utf8) }

  @Test(arguments: [
    "", "{}", #"{"a":"b"}"#, #"["é\u00e9\n\"\\\/"]"#, #"["\ud83d\ude00"]"#, #"["\\ud83d"]"#, "[\"\u{10FFFF}\u{800}\"]",
    "\t{\r\n\"a\" : 1 }\n", "<html>", #"["unfinished"#, #"["\"#, #"["\u12"#, #"["\x"]"#,
  ])
  func `Text that needs no repair, or can't be repaired, stays the same`(text: String) {
    #expect(Self.repaired(text) == text)
  }

  @Test(arguments: [
    (#"["cut \ud83d"]"#, #"["cut \uFFFD"]"#), (#"["\ude00"]"#, #"["\uFFFD"]"#),
    (#"["\ud83d\ud83d\ude00"]"#, #"["\uFFFD\ud83d\ude00"]"#), (#"["\ude00\ud83d"]"#, #"["\uFFFD\uFFFD"]"#),
    (#"["\uD83Dx\uDE00"]"#, #"["\uFFFDx\uFFFD"]"#), (#"["\ud83d\n"]"#, #"["\uFFFD\n"]"#),
    (#"["\\\ud83d"]"#, #"["\\\uFFFD"]"#), (#"{"\ud83d":1}"#, #"{"\uFFFD":1}"#),
    (#"["\ud83d\ude0"]"#, #"["\uFFFD\ude0"]"#),
  ])
  func `An escape of a surrogate that isn't part of a pair becomes U+FFFD`(text: String, expected: String) {
    #expect(Self.repaired(text) == expected)
  }

  @Test(
    arguments: [
      ([0x63, 0x61, 0x66, 0xE9], "caf\u{FFFD}"), ([0xC3], "\u{FFFD}"), ([0xE2, 0x82], "\u{FFFD}"),
      ([0xF0, 0x9F, 0x98], "\u{FFFD}"), ([0xC0, 0x80], "\u{FFFD}\u{FFFD}"), ([0x80, 0xFF, 0x61], "\u{FFFD}\u{FFFD}a"),
      // The two surrogates of U+1F600 in CESU-8.
      ([0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], String(repeating: "\u{FFFD}", count: 6)),
      ([0xF4, 0x90, 0x80, 0x80], String(repeating: "\u{FFFD}", count: 4)), ([0xC3, 0xC3, 0xA9], "\u{FFFD}é"),
      ([0xE9, 0x5C, 0x6E], "\u{FFFD}\\n"), ([0x5C, 0xE9], "\\\u{FFFD}"),
    ] as [([UInt8], String)])
  func `Bytes in a string that aren't UTF-8 become U+FFFD`(bytes: [UInt8], expected: String) {
    #expect(Self.repaired(Self.json(bytes)) == Self.json(Array(expected.utf8)))
  }

  @Test func `Invalid bytes are replaced as the standard library does it`() {
    var random = SystemRandomNumberGenerator()
    let candidates: [UInt8] = [
      0x61, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC3, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5,
    ]
    for _ in 0..<2_000 {
      let bytes = (0..<Int.random(in: 0...8)).map { _ in candidates.randomElement(using: &random) ?? 0 }
      #expect(Self.repaired(Self.json(bytes)) == Self.json(Array(String(decoding: bytes, as: UTF8.self).utf8)))
    }
  }

  @Test func `Numbers that JSON doesn't have become null, but not in strings`() {
    #expect(
      Self.repaired(#"{"NaN":[NaN,-Infinity,Infinity,-1,"-Infinity NaN"],"cost":NaN}"#)
        == #"{"NaN":[null,null,null,-1,"-Infinity NaN"],"cost":null}"#)
    #expect(Self.repaired("[Na") == "[Na")
  }

  @Test func `A control character in a string is kept if it has a short escape, and becomes U+FFFD otherwise`() {
    #expect(Self.repaired("[\"a\tb\r\n\u{8}\u{C}\"]") == #"["a\tb\r\n\b\f"]"#)
    #expect(Self.repaired("[\"\u{1B}[2J\u{0}\"]") == "[\"\u{FFFD}[2J\u{FFFD}\"]")
  }

  @Test func `Nothing is repaired outside strings`() {
    let bytes: [UInt8] = [0x5B, 0xE9, 0x09, 0x01, 0x5D]
    #expect(Self.repaired(bytes) == bytes)
  }

  @Test func `A repaired body is at most three times as long, and takes linear time`() throws {
    let count = 1 << 20
    for byte in [0x80, 0x01, 0xE9] as [UInt8] {
      #expect(Self.repaired(Self.json(Array(repeating: byte, count: count))).count == 4 + 3 * count)
    }
  }

  // MARK: - Replies

  @Test(
    arguments: [
      (Array(#"cut \ud83d"#.utf8), "cut \u{FFFD}"), (Array(#"\ude00"#.utf8), "\u{FFFD}"),
      ([0x63, 0x61, 0x66, 0xE9], "caf\u{FFFD}"), (Array("a\tb".utf8), "a\tb"), ([0xE2, 0x82], "\u{FFFD}"),
    ] as [([UInt8], String)])
  func `A reply with invalid text is read`(bytes: [UInt8], text: String) throws {
    let body = Data(#"{"data":["#.utf8) + Data("\"".utf8) + Data(bytes) + Data("\"]}".utf8)
    guard case .payload(let payload) = try GraphQLReply<[String]>.decode(body).data else {
      Issue.record("expected data")
      return
    }
    #expect(payload == [text])
    #expect(GraphQLShape.matches(body))
  }
}
