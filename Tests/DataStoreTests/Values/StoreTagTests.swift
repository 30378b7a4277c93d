import Foundation
import Testing

@testable import DataStore

@Suite struct StoreTagTests {
  @Test func `A tag can be created from its text, and is the same after encoding and decoding`() throws {
    let tag = StoreTag()
    #expect(StoreTag(text: tag.text) == tag)
    #expect(try JSONDecoder().decode([StoreTag].self, from: JSONEncoder().encode([tag])) == [tag])
  }

  @Test(arguments: [
    "", "0", String(repeating: "0", count: 31), String(repeating: "0", count: 33), String(repeating: "g", count: 32),
    "+123456789abcdef0123456789abcdef", "0123456789abcdef-123456789abcdef", "0123456789abcdef0123456789abcde ",
  ])
  func `A text that isn't 32 hexadecimal digits is no tag`(text: String) throws {
    #expect(StoreTag(text: text) == nil)
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(StoreTag.self, from: Data("\"\(text)\"".utf8)) }
  }
}
