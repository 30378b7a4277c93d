import Foundation
import Moments
import Testing

@testable import MomentsCommand

struct DemoDataTests {
  private struct Seed: Decodable {
    let users: [MomentsDetails.UserDetails]
    let timelines: [String: [MomentsDetails.Moment]]
  }

  @Test func `The demo shows what the test server serves`() throws {
    let file = URL(filePath: #filePath).appending(path: "../../../Support/bff/data.json").standardizedFileURL
    let seed = try JSONDecoder().decode(Seed.self, from: Data(contentsOf: file))
    #expect(DemoData.timelines.map(\.userDetails) == seed.users)
    #expect(seed.timelines.count == seed.users.count)
    for timeline in DemoData.timelines {
      #expect(timeline.moments == seed.timelines[timeline.userDetails.id])
    }
    #expect(DemoData.userID == "0")
  }
}
