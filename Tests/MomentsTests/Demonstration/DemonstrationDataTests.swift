import Foundation
import Moments
import Testing

@testable import MomentsTesting

struct DemonstrationDataTests {
  private struct ServerData: Decodable {
    let users: [MomentsDetails.UserDetails]
    /// The moments of each user, by the user's id.
    let timelines: [String: [MomentsDetails.Moment]]
  }

  @Test func `The demonstration data equals the test server's data`() throws {
    let file = URL(filePath: #filePath).appending(path: "../../../Support/bff/data.json").standardizedFileURL
    let serverData = try JSONDecoder().decode(ServerData.self, from: Data(contentsOf: file))
    #expect(DemonstrationData.timelines.map(\.userDetails) == serverData.users)
    #expect(serverData.timelines.count == serverData.users.count)
    for timeline in DemonstrationData.timelines {
      #expect(timeline.moments == serverData.timelines[timeline.userDetails.id])
    }
  }
}
