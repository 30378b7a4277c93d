import MulticastTesting
import Testing

@testable import Repository

@Suite struct SharedRequestsStateTests {
  @Test func `The first caller starts a request, later callers join it, and the last one to leave cancels it`() {
    var state = SharedRequestsState<String, Int>()
    let first = state.join("a") { 1 }
    let second = state.join("a") { 2 }
    #expect(first.isFirst && !second.isFirst)
    #expect([first.request, second.request] == [1, 1])
    #expect(second.callers == 2)
    #expect(state.leave("a", number: first.number) == .nothing)
    #expect(state.leave("a", number: first.number) == .cancel)
    #expect(state.finish("a", number: first.number) == false)
    let third = state.join("a") { 3 }
    #expect(third.isFirst && third.request == 3)
    // Late events of the cancelled request don't affect the next one.
    #expect(state.finish("a", number: first.number) == false)
    #expect(state.leave("a", number: first.number) == .nothing)
    #expect(state.finish("a", number: third.number) == true)
    #expect(state.leave("a", number: third.number) == .nothing)
  }

  @Test func `A request is wanted until its last caller leaves, and the next caller starts another one`() {
    var state = SharedRequestsState<String, Int>()
    let first = state.join("a") { 1 }
    _ = state.join("a") { 2 }
    _ = state.leave("a", number: first.number)
    #expect(state.isWanted("a", number: first.number))
    _ = state.leave("a", number: first.number)
    #expect(!state.isWanted("a", number: first.number))
    let second = state.join("a") { 3 }
    #expect(!state.isWanted("a", number: first.number))
    #expect(state.isWanted("a", number: second.number))
    #expect(state.remove { $0 == "a" } == [3])
    #expect(!state.isWanted("a", number: second.number))
  }

  @Test(arguments: 0..<50 as Range<UInt64>)
  func `The state agrees with a count of the callers of each request`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var state = SharedRequestsState<Int, Int>()
    // The requests that can be joined, each with the count of its callers, and the completed or cancelled requests.
    var open: [Int: (number: UInt64, callers: Int)] = [:]
    var over: [(key: Int, number: UInt64)] = []
    for step in 0..<500 {
      let key = Int.random(in: 0..<3, using: &generator)
      switch Int.random(in: 0..<5, using: &generator) {
      case 0...1:
        let place = state.join(key) { step }
        #expect(place.isFirst == (open[key] == nil))
        open[key] = (place.number, (open[key]?.callers ?? 0) + 1)
        #expect(place.callers == open[key]!.callers)
      case 2:
        guard let request = open[key] else { break }
        let isLast = request.callers == 1
        #expect(state.leave(key, number: request.number) == (isLast ? .cancel : .nothing))
        open[key] = isLast ? nil : (request.number, request.callers - 1)
        if isLast { over.append((key, request.number)) }
      case 3:
        guard let request = open.removeValue(forKey: key) else { break }
        #expect(state.finish(key, number: request.number) == true)
        over.append((key, request.number))
      default:
        guard let request = over.randomElement(using: &generator) else { break }
        #expect(state.leave(request.key, number: request.number) == .nothing)
        #expect(state.finish(request.key, number: request.number) == false)
      }
    }
  }
}
