import Foundation
import Testing

@testable import Repository

@Suite struct MutationIDTests {
  @Test func `An id is a random version 4 UUID in lower case, and ids are unique`() {
    let ids = (0..<1_000).map { _ in MutationID().rawValue }
    #expect(Set(ids).count == 1_000)
    for id in ids {
      #expect(UUID(uuidString: id)?.uuidString.lowercased() == id)
      // This digit is the version.
      #expect(Array(id)[14] == "4")
    }
    // The upper bits of this digit are the variant.
    #expect(Set(ids.map { Array($0)[19] }) == ["8", "9", "a", "b"])
    // Each of the other digits takes all 16 values. This checks seven of these digits.
    for index in [0, 7, 9, 15, 20, 24, 35] { #expect(Set(ids.map { Array($0)[index] }).count == 16) }
  }
}
