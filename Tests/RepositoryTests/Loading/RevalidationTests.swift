import Foundation
import Repository
import Testing

@Suite struct RevalidationTests {
  @Test func `A read asks when what is stored is stale or missing`() {
    let freshness = Freshness(timeToLive: .seconds(60))
    let saved = Date(timeIntervalSinceReferenceDate: 700_000_000)
    #expect(freshness.revalidation(savedAt: nil, now: saved) == .beforeShowing)
    #expect(freshness.revalidation(savedAt: saved, now: saved + 59) == .notNeeded)
    #expect(freshness.revalidation(savedAt: saved, now: saved + 60) == .whileShowingStored)
    #expect(freshness.revalidation(savedAt: saved, now: saved - 1) == .whileShowingStored)
  }
}
