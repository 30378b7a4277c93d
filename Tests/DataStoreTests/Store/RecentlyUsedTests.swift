import MulticastTesting
import Testing

@testable import DataStore

@Suite struct RecentlyUsedTests {
  private func key(_ number: Int) -> StoreKeyName { StoreKeyName("a", id: "\(number)") }

  @Test func `Within the limit nothing is released`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    for number in 0..<5 { #expect(recentlyUsed.use(key(number), size: 2) == []) }
    for number in 0..<5 { #expect(recentlyUsed.use(key(number), size: 2) == []) }
  }

  @Test func `Beyond the limit the least recently used values are released, down to half of it`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    for number in 0..<5 { _ = recentlyUsed.use(key(number), size: 2) }
    _ = recentlyUsed.use(key(0), size: 2)
    #expect(recentlyUsed.use(key(5), size: 2) == [key(1), key(2), key(3), key(4)])
    #expect(recentlyUsed.use(key(6), size: 6) == [])
  }

  @Test func `The most recently used value is kept regardless of its size`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    #expect(recentlyUsed.use(key(0), size: 100) == [])
    #expect(recentlyUsed.use(key(1), size: 100) == [key(0)])
    #expect(recentlyUsed.use(key(1), size: 1) == [])
    #expect(recentlyUsed.use(key(2), size: 9) == [])
  }

  @Test func `A removed value does not count toward the limit`() {
    var recentlyUsed = RecentlyUsed(limit: 10)
    _ = recentlyUsed.use(key(0), size: 8)
    recentlyUsed.remove(key(0))
    #expect(recentlyUsed.use(key(1), size: 8) == [])
  }
}
