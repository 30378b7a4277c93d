import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting

/// A server whose every step a test takes: when a request is served, when its reply arrives, what is lost on the way.
///
/// It numbers its states: a reply's user name is the number of the state it was made from. A like under a key that it
/// knows is not made again; its answer is the reply of the first time, however old that is by now.
final class SimulatedServer: GetMomentsByUserIDSessionType, UpdateMomentLikeSessionType {
  private typealias Answer = Result<MomentsDetails, APISessionError>

  private enum Request {
    case fetch(PagedTimeline.Request)
    case like(momentID: String, isLiked: Bool, key: String)
  }

  private struct Call {
    let id: Int
    let request: Request
    let continuation: CheckedContinuation<Answer, Never>
    /// The reply on its way; nil until the request is served.
    var reply: MomentsDetails?
  }

  private struct State {
    var number = 0
    var momentIDs: [String]
    var likes: [String: Bool]
    var foreignLikes = 0
    var replies: [String: MomentsDetails] = [:]
    var calls: [Call] = []
    var nextID = 0
    /// Each like once, in the order in which it came first.
    var received: [(key: String, momentID: String, isLiked: Bool)] = []
    var isAutomatic = false
  }

  private let state: Lock<State>

  init(momentIDs: [String]) {
    state = Lock(State(momentIDs: momentIDs, likes: Dictionary(uniqueKeysWithValues: momentIDs.map { ($0, false) })))
  }

  /// The present state, as a fetch would bring it.
  var details: MomentsDetails { state.withLock { PagedTimeline.page(details($0), .init()) } }

  /// The likes of a moment in the order in which they came, each once.
  func received(for momentID: String) -> [Bool] {
    state.withLock { $0.received.filter { $0.momentID == momentID }.map(\.isLiked) }
  }

  private func details(_ state: State) -> MomentsDetails {
    MomentsDetails.fixture(
      name: "\(state.number)", momentIDs: state.momentIDs, likedMomentIDs: Set(state.likes.filter(\.value).map(\.key)))
  }

  // MARK: - Sessions

  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    try await call(.fetch(.init()))
  }

  func getMoments(userID: String, first: Int, after: String?) async throws(APISessionError) -> MomentsDetails {
    try await call(.fetch(.init(first: first, after: after)))
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    throw .unsupportedURL("A like comes with a key.")
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await call(.like(momentID: momentID, isLiked: isLiked, key: idempotencyKey))
  }

  private func call(_ request: Request) async throws(APISessionError) -> MomentsDetails {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    let answer = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Answer? = state.withLock { state in
          if Task.isCancelled { return .failure(.cancelled) }
          if state.isAutomatic { return .success(serve(request, &state)) }
          state.calls.append(Call(id: id, request: request, continuation: continuation))
          return nil
        }
        if let answer { continuation.resume(returning: answer) }
      }
    } onCancel: {
      let call = state.withLock { state in
        state.calls.firstIndex { $0.id == id }.map { state.calls.remove(at: $0) }
      }
      call?.continuation.resume(returning: .failure(.cancelled))
    }
    // Shows the thread sanitizer that the answer was made before: it does not see that a continuation was resumed early.
    state.withLock { _ in }
    return try answer.get()
  }

  private func serve(_ request: Request, _ state: inout State) -> MomentsDetails {
    let (momentID, isLiked, key): (String, Bool, String)
    switch request {
    case .fetch(let page): return PagedTimeline.page(details(state), page)
    case .like(let likedID, let likes, let likeKey): (momentID, isLiked, key) = (likedID, likes, likeKey)
    }
    if let reply = state.replies[key] { return reply }
    state.number += 1
    state.likes[momentID] = isLiked
    state.received.append((key, momentID, isLiked))
    let reply = PagedTimeline.page(details(state), .init())
    state.replies[key] = reply
    return reply
  }

  // MARK: - Steps

  /// Something changes that this device has no part in.
  func changeElsewhere() {
    state.withLock { $0.number += 1 }
  }

  /// Somebody puts a new moment at the head of the timeline.
  func insert(_ momentID: String) {
    state.withLock { state in
      state.number += 1
      state.momentIDs.insert(momentID, at: 0)
      state.likes[momentID] = false
    }
  }

  /// Serves a request that waits, if any: its reply is on its way.
  func serve(using random: inout SplitMix64) {
    state.withLock { state in
      guard let index = state.calls.indices.filter({ state.calls[$0].reply == nil }).randomElement(using: &random)
      else {
        return
      }
      state.calls[index].reply = serve(state.calls[index].request, &state)
    }
  }

  /// A reply that is on its way arrives, if any.
  func deliver(using random: inout SplitMix64) {
    let call = state.withLock { state in
      state.calls.indices.filter { state.calls[$0].reply != nil }.randomElement(using: &random)
        .map { state.calls.remove(at: $0) }
    }
    if let call, let reply = call.reply { call.continuation.resume(returning: .success(reply)) }
  }

  /// A request that waits, or a reply on its way, is lost, if any.
  func lose(using random: inout SplitMix64) {
    let call = state.withLock { state in
      state.calls.indices.randomElement(using: &random).map { state.calls.remove(at: $0) }
    }
    call?.continuation.resume(returning: .failure(.timedOut))
  }

  /// A reply that is on its way arrives and cannot be used, if any.
  func spoil(using random: inout SplitMix64) {
    let call = state.withLock { state in
      state.calls.indices.filter { state.calls[$0].reply != nil }.randomElement(using: &random)
        .map { state.calls.remove(at: $0) }
    }
    call?.continuation.resume(returning: .failure(.emptyReply))
  }

  /// Answers all calls, and those to come, at once.
  func answerAll() {
    let answers = state.withLock { state in
      state.isAutomatic = true
      defer { state.calls = [] }
      return state.calls.map { call in (call.continuation, call.reply ?? serve(call.request, &state)) }
    }
    for (continuation, reply) in answers { continuation.resume(returning: .success(reply)) }
  }
}
