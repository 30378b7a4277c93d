import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting

/// A simulated server whose steps a test controls: serving a request, delivering or corrupting its reply, and losing
/// the request or the reply.
///
/// The server numbers its states. The user name of a reply is the number of the state from which the reply was created.
/// A like under a known key isn't made again. It gets the first reply, even if that reply is outdated.
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
    /// The reply in flight; `nil` until the request is served.
    var reply: MomentsDetails?
  }

  private struct State {
    var number = 0
    var momentIDs: [String]
    var likes: [String: Bool]
    var repliesByKey: [String: MomentsDetails] = [:]
    var calls: [Call] = []
    var lastCallID = 0
    /// The likes that the server has served, in order, without repeated attempts.
    var servedLikes: [(key: String, momentID: String, isLiked: Bool)] = []
    var answersImmediately = false
  }

  private let state: Lock<State>

  init(momentIDs: [String]) {
    state = Lock(State(momentIDs: momentIDs, likes: Dictionary(uniqueKeysWithValues: momentIDs.map { ($0, false) })))
  }

  /// The current timeline, as a fetch would return it.
  var details: MomentsDetails { state.withLock { PagedTimeline.page(details($0), .init()) } }

  /// Returns the likes of a moment that the server has served, in order, without repeated attempts.
  func servedLikes(of momentID: String) -> [Bool] {
    state.withLock { $0.servedLikes.filter { $0.momentID == momentID }.map(\.isLiked) }
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
    throw .unsupportedURL("A like needs a key.")
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await call(.like(momentID: momentID, isLiked: isLiked, key: idempotencyKey))
  }

  private func call(_ request: Request) async throws(APISessionError) -> MomentsDetails {
    let id = state.withLock { state in
      state.lastCallID += 1
      return state.lastCallID
    }
    let answer = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let answer: Answer? = state.withLock { state in
          if Task.isCancelled { return .failure(.cancelled) }
          if state.answersImmediately { return .success(serve(request, &state)) }
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
    // Shows the thread sanitizer that the answer was created before it is used. The sanitizer doesn't recognize a
    // continuation that is resumed before its task suspends.
    state.withLock { _ in }
    return try answer.get()
  }

  private func serve(_ request: Request, _ state: inout State) -> MomentsDetails {
    let (momentID, isLiked, key): (String, Bool, String)
    switch request {
    case .fetch(let pageRequest): return PagedTimeline.page(details(state), pageRequest)
    case .like(let requestedMomentID, let requestedIsLiked, let requestKey):
      (momentID, isLiked, key) = (requestedMomentID, requestedIsLiked, requestKey)
    }
    if let reply = state.repliesByKey[key] { return reply }
    state.number += 1
    state.likes[momentID] = isLiked
    state.servedLikes.append((key, momentID, isLiked))
    let reply = PagedTimeline.page(details(state), .init())
    state.repliesByKey[key] = reply
    return reply
  }

  // MARK: - Steps

  /// Changes the state of the server without a request of the repository.
  func changeExternally() {
    state.withLock { $0.number += 1 }
  }

  /// Inserts a new moment at the head of the timeline.
  func insert(_ momentID: String) {
    state.withLock { state in
      state.number += 1
      state.momentIDs.insert(momentID, at: 0)
      state.likes[momentID] = false
    }
  }

  /// Serves a random waiting request, if any, so that its reply is in flight.
  func serve(using random: inout SplitMix64) {
    state.withLock { state in
      guard let index = state.calls.indices.filter({ state.calls[$0].reply == nil }).randomElement(using: &random)
      else {
        return
      }
      state.calls[index].reply = serve(state.calls[index].request, &state)
    }
  }

  /// Delivers a random reply in flight, if any.
  func deliver(using random: inout SplitMix64) {
    let call = state.withLock { state in
      state.calls.indices.filter { state.calls[$0].reply != nil }.randomElement(using: &random)
        .map { state.calls.remove(at: $0) }
    }
    if let call, let reply = call.reply { call.continuation.resume(returning: .success(reply)) }
  }

  /// Loses a random waiting request or reply in flight, if any.
  func lose(using random: inout SplitMix64) {
    let call = state.withLock { state in
      state.calls.indices.randomElement(using: &random).map { state.calls.remove(at: $0) }
    }
    call?.continuation.resume(returning: .failure(.timedOut))
  }

  /// Delivers an unusable reply in place of a random reply in flight, if any.
  func corrupt(using random: inout SplitMix64) {
    let call = state.withLock { state in
      state.calls.indices.filter { state.calls[$0].reply != nil }.randomElement(using: &random)
        .map { state.calls.remove(at: $0) }
    }
    call?.continuation.resume(returning: .failure(.emptyReply))
  }

  /// Answers all waiting calls, and from now on each new call immediately.
  func answerAll() {
    let answers = state.withLock { state in
      state.answersImmediately = true
      defer { state.calls = [] }
      return state.calls.map { call in (call.continuation, call.reply ?? serve(call.request, &state)) }
    }
    for (continuation, reply) in answers { continuation.resume(returning: .success(reply)) }
  }
}
