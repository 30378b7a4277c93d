import DataStore
import Testing

@Suite struct StoreKeyNameTests {
  @Test func `Encoding leaves only a to z, 0 to 9, underscores and hyphens unchanged`() throws {
    #expect(try StoreKeyName("az09_-").encoded() == "az09_-")
    #expect(try StoreKeyName("timeline", id: "Jake/0").encoded() == "timeline.%4aake%2f0")
    #expect(try StoreKeyName("../x").encoded() == "%2e%2e%2fx")
    #expect(try StoreKeyName("a\u{0}~%A").encoded() == "a%00%7e%25%41")
    #expect(try StoreKeyName("名").encoded() == "%e5%90%8d")
  }

  @Test func `A collection with a dot is encoded differently from a collection and an id`() throws {
    #expect(try StoreKeyName("a.b").encoded() == "a%2eb")
    #expect(try StoreKeyName("a", id: "b").encoded() == "a.b")
  }

  @Test func `Names that differ only in Unicode normalization have the same encoding`() throws {
    #expect(try StoreKeyName("e\u{301}").encoded() == "%c3%a9")
    #expect(try StoreKeyName("\u{E9}").encoded() == "%c3%a9")
  }

  @Test func `Decoding an encoded name returns the name`() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2_000 {
      let collection = String.random(using: &random)
      let id = Bool.random(using: &random) ? String.random(using: &random) : nil
      let keyName = StoreKeyName(collection, id: id)
      let encoded = try keyName.encoded()
      #expect(StoreKeyName(encoded: encoded) == keyName, "\(encoded)")
      #expect(encoded.utf8.allSatisfy { "abcdefghijklmnopqrstuvwxyz0123456789_-%.".utf8.contains($0) })
    }
  }

  @Test(arguments: [
    "", ".", "a.", ".a", "a.b.c", "A", "a b", "%", "%4", "%4A", "%4x", "%61", "%ff", "%e5", "a/b", "e%cc%81",
    // The names of a quarantined file and a staged file, and a text that is too long.
    "a.corrupt-20201116T102240.000Z", ".DataStore-1",
    String(repeating: "a", count: StoreKeyName.maximumEncodedLength + 1),
  ])
  func `Text that is not the encoded form of any name decodes to nil`(encoded: String) {
    #expect(StoreKeyName(encoded: encoded) == nil)
  }

  @Test func `Encoding an invalid name throws an error with the reason`() {
    #expect(throws: StoreError.invalidKey(.emptyCollection)) { try StoreKeyName("", id: "Jake").encoded() }
    #expect(throws: StoreError.invalidKey(.emptyID)) { try StoreKeyName("a", id: "").encoded() }
    // With the dot and the id, the encoding is one byte longer than the limit of 200.
    #expect(throws: StoreError.invalidKey(.tooLong(encodedLength: 201))) {
      try StoreKeyName(String(repeating: "a", count: 199), id: "b").encoded()
    }
  }
}

extension String {
  fileprivate static func random(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet: [Character] = ["a", "B", "0", ".", "/", "%", "\u{0}", "名", "\u{1F389}", "e\u{301}", "-", " "]
    let length = Int.random(in: 1...8, using: &generator)
    return String((0..<length).map { _ in alphabet.randomElement(using: &generator)! })
  }
}
