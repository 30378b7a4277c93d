internal import Foundation
internal import GraphQLClient
internal import Moments
internal import MomentsTesting
internal import MulticastTesting

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif
#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A simulated server of likes, whose file outlives the processes that use it.
///
/// Each applied change is one line of the file, `KEY USER MOMENT IS-LIKED`, written with a single call of `write`. A
/// change is therefore applied completely or not at all, no matter when the process is killed. Only the first request
/// with an idempotency key is applied. Later ones get the original reply, which may be out of date.
actor LikesServer {
  private struct Change {
    let key: String
    let like: MomentLike
  }

  private enum Fault {
    case beforeApplying, afterApplying
  }

  private let file: CInt
  private var changes: [Change]
  /// The source of random faults; `nil` for a server without faults.
  private var random: SplitMix64?

  init(file url: URL, seed: UInt64?) {
    let path = url.path(percentEncoded: false)
    file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0, let bytes = FileManager.default.contents(atPath: path) else { TestChild.fail("open: \(path)") }
    changes = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 4 else { TestChild.fail("incomplete line: \(line)") }
      let like = MomentLike(userID: words[1], momentID: words[2], isLiked: words[3] == "true")
      return Change(key: words[0], like: like)
    }
    random = seed.map { SplitMix64(seed: $0) }
  }

  /// The ids of the users whose timelines were changed.
  var userIDs: Set<String> { Set(changes.map(\.like.userID)) }

  /// Returns the current timeline of a user.
  func timeline(of userID: String) -> MomentsDetails {
    timeline(of: userID, afterFirst: changes.count)
  }

  private func timeline(of userID: String, afterFirst changeCount: Int) -> MomentsDetails {
    var liked: Set<String> = []
    for change in changes.prefix(changeCount) where change.like.userID == userID {
      if change.like.isLiked { liked.insert(change.like.momentID) } else { liked.remove(change.like.momentID) }
    }
    return .fixture(userID: userID, momentIDs: TestChild.momentIDs, likedMomentIDs: liked)
  }

  /// Returns the fault of the next request, or `nil` if the request is answered.
  ///
  /// A server with random faults answers half of the requests.
  private func drawFault() -> Fault? {
    switch random?.next() {
    case let number? where number % 4 == 0: .beforeApplying
    case let number? where number % 4 == 1: .afterApplying
    default: nil
    }
  }

  /// Applies a change, unless a change with the same key was applied before.
  ///
  /// - Returns: The number of changes up to and including this one.
  private func apply(_ change: Change) -> Int {
    if let index = changes.firstIndex(where: { $0.key == change.key }) {
      guard changes[index].like == change.like else { TestChild.fail("\(change.key) names two likes") }
      return index + 1
    }
    let line = Data("\(change.key) \(change.like.userID) \(change.like.momentID) \(change.like.isLiked)\n".utf8)
    guard line.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == line.count else {
      TestChild.fail("write: \(errno)")
    }
    changes.append(change)
    return changes.count
  }
}

extension LikesServer: GetMomentsByUserIDSessionType {
  func getMoments(userID: String) throws(APISessionError) -> MomentsDetails {
    if drawFault() != nil { throw .timedOut }
    return timeline(of: userID)
  }
}

extension LikesServer: UpdateMomentLikeSessionType {
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) throws(APISessionError) -> MomentsDetails {
    TestChild.fail("a like without a key")
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) throws(APISessionError) -> MomentsDetails {
    let fault = drawFault()
    if case .beforeApplying = fault { throw .timedOut }
    let like = MomentLike(userID: userID, momentID: momentID, isLiked: isLiked)
    let changeCount = apply(Change(key: idempotencyKey, like: like))
    if case .afterApplying = fault { throw .transport(URLError(.networkConnectionLost)) }
    return timeline(of: userID, afterFirst: changeCount)
  }
}
