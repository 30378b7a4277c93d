import Foundation
import Repository
import Testing

@Suite struct FreshnessTests {
  private let saved = Date(timeIntervalSinceReferenceDate: 700_000_000)

  @Test(arguments: zip([0, 59.5, 60, 61, 1e9, -0.5, -1e9], [true, true, false, false, false, false, false]))
  func `A value is fresh until its time to live has elapsed, and never if it was saved in the future`(
    seconds: Double, isFresh: Bool
  ) {
    let freshness = Freshness(timeToLive: .seconds(60))
    #expect(freshness.isFresh(savedAt: saved, now: saved + seconds) == isFresh)
  }

  @Test func `If the time to live isn't positive, every value is stale`() {
    #expect(!Freshness(timeToLive: .zero).isFresh(savedAt: saved, now: saved))
    #expect(!Freshness(timeToLive: .seconds(-1)).isFresh(savedAt: saved, now: saved))
  }

  @Test func `The age is the time since the value was saved`() {
    #expect(Freshness.age(savedAt: saved, now: saved) == .zero)
    #expect(Freshness.age(savedAt: saved, now: saved + 90.5) == .milliseconds(90_500))
    #expect(Freshness.age(savedAt: saved, now: saved - 1) == nil)
    #expect(LoadedValue("a", savedAt: saved).age(at: saved + 2) == .seconds(2))
  }

  @Test(arguments: [-Double.infinity, -1e300, .infinity, .nan])
  func `A value saved at an impossible time has no age and is stale`(seconds: Double) {
    let impossible = Date(timeIntervalSinceReferenceDate: seconds)
    #expect(Freshness.age(savedAt: impossible, now: saved) == nil)
    #expect(!Freshness(timeToLive: .seconds(60)).isFresh(savedAt: impossible, now: saved))
  }
}
