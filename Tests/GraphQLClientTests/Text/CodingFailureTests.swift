import Foundation
import Testing

@testable import GraphQLClient

struct CodingFailureTests {
  private struct Key: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
      self.stringValue = stringValue
      intValue = nil
    }

    init(intValue: Int) {
      stringValue = "Index \(intValue)"
      self.intValue = intValue
    }
  }

  private static let path: [any CodingKey] = [
    Key(stringValue: "users"), Key(intValue: 3), Key(stringValue: "name"),
  ]

  private static func context(_ reason: String, at path: [any CodingKey] = path) -> DecodingError.Context {
    DecodingError.Context(codingPath: path, debugDescription: reason)
  }

  @Test func `A decoding error is described by its reason and its path`() {
    // A period at the end of a reason is dropped.
    let errors: [DecodingError] = [
      .typeMismatch(Int.self, Self.context("Not a number.")), .valueNotFound(Int.self, Self.context("Not a number")),
      .dataCorrupted(Self.context("Not a number.")),
    ]
    for error in errors { #expect(CodingFailure.reason(of: error) == "Not a number at users.3.name") }
  }

  @Test func `The description of a missing key contains its name`() {
    let error = DecodingError.keyNotFound(Key(stringValue: "id"), Self.context("No value associated with key"))
    #expect(CodingFailure.reason(of: error) == "“id” is missing at users.3.name")
  }

  @Test func `The description of an error at the root has no path`() {
    #expect(
      CodingFailure.reason(of: DecodingError.dataCorrupted(Self.context("Not JSON.", at: []))) == "Not JSON")
    #expect(
      CodingFailure.reason(of: DecodingError.keyNotFound(Key(stringValue: "id"), Self.context("", at: [])))
        == "“id” is missing")
  }

  @Test func `An encoding error is described by its reason and its path`() {
    struct Variables: Encodable {
      var amounts = [1, Double.nan]
    }
    let error = #expect(throws: EncodingError.self) { try JSONEncoder().encode(Variables()) }
    let reason = error.map(CodingFailure.reason(of:))
    #expect(reason?.hasSuffix(" at amounts.1") == true)
    let context = EncodingError.Context(codingPath: Self.path, debugDescription: "No.")
    #expect(CodingFailure.reason(of: EncodingError.invalidValue(1, context)) == "No at users.3.name")
  }

  @Test func `An error that is not a coding error is described by its own description, on one line`() {
    struct Custom: Error, CustomStringConvertible {
      var description: String { "Out\nof order." }
    }
    #expect(CodingFailure.reason(of: Custom()) == "Out of order.")
  }

  @Test func `Keys and reasons from a server are sanitized`() {
    let key = Key(stringValue: "a\u{1B}[2Jb\u{202E}")
    #expect(
      CodingFailure.reason(of: DecodingError.typeMismatch(Int.self, Self.context("c\u{07}d\u{2028}.", at: [key])))
        == "c d  at a [2Jb ")
    #expect(
      CodingFailure.reason(of: DecodingError.keyNotFound(key, Self.context("", at: [key])))
        == "“a [2Jb ” is missing at a [2Jb ")
  }

  @Test func `The length limit applies to the reason and the path together`() {
    let key = Key(stringValue: String(repeating: "x", count: 4 << 20))
    let error = DecodingError.typeMismatch(Int.self, Self.context("No.", at: [key, key]))
    // The line has 512 characters in all.
    #expect(CodingFailure.reason(of: error) == "No at " + String(repeating: "x", count: 505) + "…")
  }
}
