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

  @Test func `A digest replaces an id that makes the encoding longer than the limit`() throws {
    // The digest is that of `printf %s aaa… | sha256sum`.
    let longID = String(repeating: "a", count: 196)
    let encoded = try StoreKeyName("page", id: longID).encoded()
    #expect(encoded == "page.~96b864ee9e10a31f8425084ed115df8951bb8d1303cb13f43c0a600eb03643b0")
    #expect(StoreKeyName.isEncoded(encoded))
    #expect(StoreKeyName(encoded: encoded) == nil)
    #expect(try StoreKeyName("page", id: String(longID.dropLast())).encoded() == "page.\(longID.dropLast())")
  }

  @Test func `Long ids that differ have different encodings, also if only their case differs`() throws {
    let ids = ["a", "A", "名", "\u{E9}", "e\u{301}\u{302}"].map { String(repeating: $0, count: 300) }
    let encodings = try ids.map { try StoreKeyName("page", id: $0).encoded() }
    #expect(Set(encodings).count == ids.count)
    #expect(Set(encodings.map { $0.lowercased() }).count == ids.count)
    #expect(encodings.allSatisfy { $0.utf8.count <= StoreKeyName.maximumEncodedLength })
    #expect(
      try StoreKeyName("page", id: String(repeating: "e\u{301}", count: 300)).encoded() == encodings[3])
  }

  @Test(arguments: [
    "page.~", "page.~abc", "page.~" + String(repeating: "A", count: 64), "page.~" + String(repeating: "0", count: 65),
    "page.x~" + String(repeating: "0", count: 64), ".~" + String(repeating: "0", count: 64),
    "page.~" + String(repeating: "0", count: 64) + ".corrupt-20201116T102240.000Z",
    String(repeating: "a", count: 135) + ".~" + String(repeating: "0", count: 64),
  ])
  func `Text that only resembles the name of a long id is not one`(text: String) {
    #expect(!StoreKeyName.isEncoded(text))
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
