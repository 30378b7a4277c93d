import DataStore
import Foundation
import GraphQLClient
import Moments
import Multicast
import Repository

/// The code of `README.md`, copied unchanged so that the compiler checks it.
enum ReadmeExamples {
  static func thermometer() async {
    actor Thermometer {
      private let channel = MulticastChannel<Double, Never>(replay: 1, buffering: .unbounded)
      nonisolated var readings: MulticastStream<Double, Never> { channel.stream }

      func measured(_ celsius: Double) {
        channel.send(celsius)
      }
    }

    let thermometer = Thermometer()
    await thermometer.measured(21.5)
    for await celsius in thermometer.readings {
      print("It is \(celsius) °C.")
      if celsius > 21 { break }
    }
  }

  static func repository(folder: URL, server: URL) async throws {
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(FileStore(folder: folder)),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: APISession(url: server)),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: APISession(url: server)))

    try await repo.getMoments(userID: "0")
    switch try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") {
    case .confirmed: print("The server has it.")
    case .queued: print("Not confirmed yet. The like is stored and shown, and will be sent.")
    }
    for await timeline in repo.momentsDetails(userID: "0") {
      print("\(timeline.userDetails.name) has \(timeline.moments.count) moments.")
    }
  }
}
