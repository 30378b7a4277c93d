import Moments
import MomentsTesting

/// The code of `MomentsTesting.md`, copied unchanged so that the compiler checks it.
enum MomentsTestingExamples {
  static func firstExample(print: @escaping Print) async throws {
    let server = DemonstrationServer()
    let timeline = try await server.getMoments(userID: "0")
    print(timeline.userDetails.name)
  }
}
