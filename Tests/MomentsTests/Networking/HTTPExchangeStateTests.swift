import Foundation
import Testing

@testable import Moments

/// The machine, input × state.
struct HTTPExchangeStateTests {
  private typealias State = HTTPExchangeState<Int>

  private static func receiving(maximumReplySize: Int = 10) -> State {
    var state = State(maximumReplySize: maximumReplySize)
    #expect(state.start(7) == .send)
    return state
  }

  private static func finished() -> State {
    var state = receiving()
    #expect(state.complete(statusCode: 204, error: nil) == .finish(7, .success(Data())))
    return state
  }

  @Test func start_whenCreated_sends() {
    var state = State(maximumReplySize: 10)
    #expect(state.start(7) == .send)
  }

  @Test func start_whenCancelledBefore_finishesWithoutSending() {
    var state = State(maximumReplySize: 10)
    #expect(state.cancel() == .giveUp)
    #expect(state.start(7) == .finish(7, .failure(.cancelled)))
    #expect(state.complete(statusCode: nil, error: URLError(.cancelled)) == .ignore)
    #expect(state.cancel() == .ignore)
  }

  @Test func cancel_whenReceiving_stopsOnce() {
    var state = Self.receiving()
    #expect(state.cancel() == .stop(7, .failure(.cancelled)))
    #expect(state.cancel() == .ignore)
    #expect(state.receive(Data("a".utf8), statusCode: 200, expectedLength: 1) == .ignore)
    #expect(state.complete(statusCode: 200, error: nil) == .ignore)
  }

  @Test func everything_whenFinished_isIgnored() {
    var state = Self.finished()
    #expect(state.cancel() == .ignore)
    #expect(state.receive(Data("a".utf8), statusCode: 200, expectedLength: 1) == .ignore)
    #expect(state.complete(statusCode: 200, error: nil) == .ignore)
  }

  @Test func complete_whenReceiving_givesTheWholeBody() {
    var state = Self.receiving()
    #expect(state.receive(Data("ab".utf8), statusCode: 200, expectedLength: -1) == .proceed)
    #expect(state.receive(Data("cd".utf8), statusCode: 200, expectedLength: -1) == .proceed)
    #expect(state.complete(statusCode: 200, error: nil) == .finish(7, .success(Data("abcd".utf8))))
  }

  @Test func complete_withError_isTransport() {
    var state = Self.receiving()
    #expect(state.receive(Data("ab".utf8), statusCode: 200, expectedLength: 4) == .proceed)
    let error = URLError(.networkConnectionLost)
    #expect(state.complete(statusCode: 200, error: error) == .finish(7, .failure(.transport(error))))
  }

  @Test func complete_withTimeout_isTimedOut() {
    var state = Self.receiving()
    #expect(state.complete(statusCode: nil, error: URLError(.timedOut)) == .finish(7, .failure(.timedOut)))
  }

  @Test func complete_withForeignCancellation_isTransport() {
    var state = Self.receiving()
    let error = URLError(.cancelled)
    #expect(state.complete(statusCode: nil, error: error) == .finish(7, .failure(.transport(error))))
  }

  @Test func complete_withNothing_isTransport() {
    var state = Self.receiving()
    #expect(
      state.complete(statusCode: nil, error: nil)
        == .finish(7, .failure(.transport(URLError(.badServerResponse)))))
  }

  @Test(arguments: [199, 300, 401, 500])
  func complete_withRefusal_isStatus(status: Int) {
    var state = Self.receiving()
    #expect(state.receive(Data("no\n".utf8), statusCode: status, expectedLength: 3) == .proceed)
    #expect(
      state.complete(statusCode: status, error: URLError(.cancelled))
        == .finish(7, .failure(.statusCode(status, bodyExcerpt: "no "))))
  }

  @Test func receive_atTheLimit_proceeds() {
    var state = Self.receiving(maximumReplySize: 4)
    #expect(state.receive(Data("ab".utf8), statusCode: 200, expectedLength: 4) == .proceed)
    #expect(state.receive(Data("cd".utf8), statusCode: 200, expectedLength: 4) == .proceed)
    #expect(state.complete(statusCode: 200, error: nil) == .finish(7, .success(Data("abcd".utf8))))
  }

  @Test func receive_beyondTheLimit_stopsOnce() {
    var state = Self.receiving(maximumReplySize: 4)
    #expect(state.receive(Data("abc".utf8), statusCode: 200, expectedLength: -1) == .proceed)
    #expect(
      state.receive(Data("de".utf8), statusCode: 200, expectedLength: -1)
        == .stop(7, .failure(.replyTooLarge(limit: 4))))
    #expect(state.receive(Data("fg".utf8), statusCode: 200, expectedLength: -1) == .ignore)
    #expect(state.complete(statusCode: 200, error: URLError(.cancelled)) == .ignore)
  }

  @Test func receive_announcedBeyondTheLimit_stops() {
    var state = Self.receiving(maximumReplySize: 4)
    #expect(
      state.receive(Data("a".utf8), statusCode: 200, expectedLength: 5)
        == .stop(7, .failure(.replyTooLarge(limit: 4))))
  }

  @Test func receive_longRefusal_stopsAtTheExcerpt() {
    var state = Self.receiving(maximumReplySize: 4)
    let excerptBytes = BodyExcerpt.maximumByteCount
    #expect(state.receive(Data(count: excerptBytes), statusCode: 500, expectedLength: -1) == .proceed)
    let excerpt = String(repeating: " ", count: 511) + "…"
    #expect(
      state.receive(Data(count: 1 << 20), statusCode: 500, expectedLength: -1)
        == .stop(7, .failure(.statusCode(500, bodyExcerpt: excerpt))))
  }
}
