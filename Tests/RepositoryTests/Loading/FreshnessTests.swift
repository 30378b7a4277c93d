import Foundation
import Repository
import Testing

@Suite struct FreshnessTests {
  private let saveTime = Date(timeIntervalSinceReferenceDate: 700_000_000)

  @Test(arguments: zip([0, 59.5, 60, 61, 1e9, -0.5, -1e9], [true, true, false, false, false, false, false]))
  func `A value is fresh until its time to live has elapsed, and never if it was saved in the future`(
    ageInSeconds: Double, isFresh: Bool
  ) {
    let freshness = Freshness(timeToLive: .seconds(60))
    #expect(freshness.isFresh(savedAt: saveTime, now: saveTime + ageInSeconds) == isFresh)
  }

  @Test func `If the time to live isn't positive, every value is stale`() {
    #expect(!Freshness(timeToLive: .zero).isFresh(savedAt: saveTime, now: saveTime))
    #expect(!Freshness(timeToLive: .seconds(-1)).isFresh(savedAt: saveTime, now: saveTime))
  }

  @Test func `The age is the time since the value was saved`() {
    #expect(Freshness.age(savedAt: saveTime, now: saveTime) == .zero)
    #expect(Freshness.age(savedAt: saveTime, now: saveTime + 90.5) == .milliseconds(90_500))
    #expect(Freshness.age(savedAt: saveTime, now: saveTime - 1) == nil)
  }

  @Test(arguments: [-Double.infinity, -1e300, .infinity, .nan])
  func `A value saved at an impossible time has no age and is stale`(seconds: Double) {
    let impossibleTime = Date(timeIntervalSinceReferenceDate: seconds)
    #expect(Freshness.age(savedAt: impossibleTime, now: saveTime) == nil)
    #expect(!Freshness(timeToLive: .seconds(60)).isFresh(savedAt: impossibleTime, now: saveTime))
  }
}
