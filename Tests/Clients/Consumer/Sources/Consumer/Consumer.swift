import DataStore
import Moments
import Multicast

/// Uses the package as an app would: by its public names only, from a package of its own.
@main
struct Consumer {
  struct Backend: GetMomentsByUserIDSessionType, UpdateMomentLikeSessionType {
    func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
      timeline(isLiked: false)
    }

    func updateLike(
      _ isLiked: Bool, momentID: String, fromUserID userID: String
    ) async throws(APISessionError) -> MomentsDetails {
      timeline(isLiked: isLiked)
    }

    private func timeline(isLiked: Bool) -> MomentsDetails {
      MomentsDetails(
        userDetails: .init(id: "0", name: "Jake Lin", avatar: "", backgroundImage: ""),
        moments: [
          .init(
            id: "0", userDetails: .init(name: "Taylor Swift", avatar: ""), type: .photos, title: "the pic is awesome",
            photos: [], createdDate: "1605521360", isLiked: isLiked, likes: [])
        ])
    }
  }

  static func main() async throws {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let numbers = channel.stream
    let sum = Task {
      var sum = 0
      for await number in numbers { sum += number }
      return sum
    }
    while channel.subscriberCount == 0 { await Task.yield() }
    for number in 1...100 { channel.send(number) }
    channel.finish()
    print("The sum of what was sent is \(await sum.value).")

    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: Backend(),
      updateMomentLikeSession: Backend())
    try await repo.getMoments(userID: "0")
    for await timeline in repo.momentsDetails(userID: "0") {
      let moment = timeline.moments[0]
      print("\(moment.isLiked == true ? "♥" : "·") \(moment.userDetails.name): \(moment.title ?? "")")
      if moment.isLiked == true { break }
      try await repo.updateLike(isLiked: true, momentID: moment.id, fromUserID: "0")
    }
  }
}
