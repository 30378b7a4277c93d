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

/// A server of likes in a file, which outlives the processes that ask it.
///
/// Each change it makes is one line, `KEY USER MOMENT IS-LIKED`, written by one call: so it is made or not made,
/// whenever the process is killed. A key is taken once; its repetition gets the reply of the first time, though it may
/// be old by now.
actor LikesServer {
  private struct Change {
    let key: String
    let like: MomentLike
  }

  private enum Fault {
    case before, after
  }

  private let file: CInt
  private var changes: [Change]
  /// Where faults come from; nil for a server without any.
  private var random: SplitMix64?

  init(file url: URL, seed: UInt64?) {
    let path = url.path(percentEncoded: false)
    file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0, let bytes = FileManager.default.contents(atPath: path) else { TestChild.fail("no \(path)") }
    changes = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 4 else { TestChild.fail("half a line: \(line)") }
      let like = MomentLike(userID: words[1], momentID: words[2], isLiked: words[3] == "true")
      return Change(key: words[0], like: like)
    }
    random = seed.map { SplitMix64(seed: $0) }
  }

  /// Everybody who changed anything.
  var userIDs: Set<String> { Set(changes.map(\.like.userID)) }

  /// The timeline of a user as it is now.
  func timeline(of userID: String) -> MomentsDetails {
    timeline(of: userID, after: changes.count)
  }

  private func timeline(of userID: String, after count: Int) -> MomentsDetails {
    var liked: Set<String> = []
    for change in changes.prefix(count) where change.like.userID == userID {
      if change.like.isLiked { liked.insert(change.like.momentID) } else { liked.remove(change.like.momentID) }
    }
    return .fixture(userID: userID, momentIDs: TestChild.momentIDs, likedMomentIDs: liked)
  }

  /// What befalls the next request: half of them are answered.
  private func drawFault() -> Fault? {
    switch random?.next().magnitude {
    case let number? where number % 4 == 0: .before
    case let number? where number % 4 == 1: .after
    default: nil
    }
  }

  /// Makes a change, unless its key was taken before.
  ///
  /// - Returns: How many changes there were then.
  private func make(_ change: Change) -> Int {
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
    if case .before = fault { throw .timedOut }
    let like = MomentLike(userID: userID, momentID: momentID, isLiked: isLiked)
    let count = make(Change(key: idempotencyKey, like: like))
    if case .after = fault { throw .transport(URLError(.networkConnectionLost)) }
    return timeline(of: userID, after: count)
  }
}
