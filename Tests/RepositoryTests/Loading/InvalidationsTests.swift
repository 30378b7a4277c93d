import Foundation
import Testing

@testable import Repository

@Suite struct InvalidationsTests {
  /// A key whose user id is the first character of its store id.
  private struct UserKey: RepositoryKey {
    let storeID: String
    var userID: String? { storeID.first.map { String($0) } }

    init(storeID: String) { self.storeID = storeID }
  }

  private func time(_ seconds: Int) -> Date { Date(timeIntervalSinceReferenceDate: Double(seconds)) }

  @Test(arguments: [
    (KeySelection<UserKey>.key(UserKey(storeID: "a1")), ["a1"]), (.user("a"), ["a1", "a2"]),
    (.all, ["a1", "a2", "b1"]),
  ])
  private func `Of the selected keys, values saved up to the time of the invalidation are stale`(
    selection: KeySelection<UserKey>, expectedIDs: [String]
  ) {
    var invalidations = Invalidations<UserKey>()
    invalidations.add(selection, at: time(10))
    let keys = ["a1", "a2", "b1"].map { UserKey(storeID: $0) }
    for second in [9, 10] {
      #expect(keys.filter { invalidations.contains($0, savedAt: time(second)) }.map(\.storeID) == expectedIDs)
    }
    #expect(!keys.contains { invalidations.contains($0, savedAt: time(11)) })
  }

  @Test func `If too many keys were invalidated, all values saved up to the last invalidation are stale`() {
    var invalidations = Invalidations<Int>()
    let otherKey = -1
    // The key 0 is invalidated at time 0, the key 1 at time 1, and so on.
    for key in 0..<Invalidations<Int>.limit { invalidations.add(.key(key), at: time(key)) }
    #expect(!invalidations.contains(otherKey, savedAt: time(0)))
    #expect(invalidations.contains(7, savedAt: time(7)))
    #expect(!invalidations.contains(7, savedAt: time(8)))
    // This key is one too many.
    invalidations.add(.key(Invalidations<Int>.limit), at: time(5_000))
    #expect(invalidations.contains(otherKey, savedAt: time(5_000)))
    #expect(!invalidations.contains(otherKey, savedAt: time(5_001)))
  }
}
