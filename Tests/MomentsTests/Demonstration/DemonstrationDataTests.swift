import Foundation
import Moments
import Testing

@testable import MomentsTesting

struct DemonstrationDataTests {
  private struct Seed: Decodable {
    let users: [MomentsDetails.UserDetails]
    let timelines: [String: [MomentsDetails.Moment]]
  }

  @Test func `The demonstration data equals the test server's data`() throws {
    let file = URL(filePath: #filePath).appending(path: "../../../Support/bff/data.json").standardizedFileURL
    let seed = try JSONDecoder().decode(Seed.self, from: Data(contentsOf: file))
    #expect(DemonstrationData.timelines.map(\.userDetails) == seed.users)
    #expect(seed.timelines.count == seed.users.count)
    for timeline in DemonstrationData.timelines {
      #expect(timeline.moments == seed.timelines[timeline.userDetails.id])
    }
  }
}
