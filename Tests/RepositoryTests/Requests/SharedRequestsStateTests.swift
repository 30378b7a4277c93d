import MulticastTesting
import Testing

@testable import Repository

@Suite struct SharedRequestsStateTests {
  @Test func `The first caller starts a request, later callers join it, and the last one to leave cancels it`() {
    var state = SharedRequestsState<String, Int>()
    let firstPlace = state.join("a", priority: .medium) { 1 }
    let secondPlace = state.join("a", priority: .medium) { 2 }
    #expect(firstPlace.isFirst && !secondPlace.isFirst)
    #expect([firstPlace.request, secondPlace.request] == [1, 1])
    #expect(secondPlace.callers == 2)
    // Both callers leave. The number is that of the request they share.
    #expect(state.leave("a", number: firstPlace.number) == .nothing)
    #expect(state.leave("a", number: firstPlace.number) == .cancel)
    #expect(state.finish("a", number: firstPlace.number) == false)
    let thirdPlace = state.join("a", priority: .medium) { 3 }
    #expect(thirdPlace.isFirst && thirdPlace.request == 3)
    // Late events of the cancelled request don't affect the next one.
    #expect(state.finish("a", number: firstPlace.number) == false)
    #expect(state.leave("a", number: firstPlace.number) == .nothing)
    #expect(state.finish("a", number: thirdPlace.number) == true)
    #expect(state.leave("a", number: thirdPlace.number) == .nothing)
  }

  @Test func `A request is wanted until its last caller leaves, and the next caller starts another one`() {
    var state = SharedRequestsState<String, Int>()
    let firstPlace = state.join("a", priority: .medium) { 1 }
    _ = state.join("a", priority: .medium) { 2 }
    _ = state.leave("a", number: firstPlace.number)
    #expect(state.isWanted("a", number: firstPlace.number))
    // The other caller leaves.
    _ = state.leave("a", number: firstPlace.number)
    #expect(!state.isWanted("a", number: firstPlace.number))
    let nextPlace = state.join("a", priority: .medium) { 3 }
    #expect(!state.isWanted("a", number: firstPlace.number))
    #expect(state.isWanted("a", number: nextPlace.number))
    // A removed request isn't wanted any longer either, although its caller hasn't left.
    #expect(state.remove { $0 == "a" } == [3])
    #expect(!state.isWanted("a", number: nextPlace.number))
  }

  @Test func `Until its last caller leaves, a request has the highest priority that any of its callers had`() {
    var state = SharedRequestsState<String, Int>()
    let number = state.join("a", priority: .low) { 1 }.number
    #expect(state.priority("a", number: number) == .low)
    _ = state.join("a", priority: .high) { 2 }
    _ = state.join("a", priority: .medium) { 3 }
    #expect(state.priority("a", number: number) == .high)
    for _ in 1...2 { _ = state.leave("a", number: number) }
    #expect(state.priority("a", number: number) == .high)
    _ = state.leave("a", number: number)
    #expect(state.priority("a", number: number) == nil)
    let nextNumber = state.join("a", priority: .low) { 4 }.number
    #expect(state.priority("a", number: number) == nil)
    #expect(state.priority("a", number: nextNumber) == .low)
  }

  @Test(arguments: 0..<50 as Range<UInt64>)
  func `The state agrees with a count of the callers of each request`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var state = SharedRequestsState<Int, Int>()
    // The requests that can be joined, each with the count of its callers.
    var joinable: [Int: (number: UInt64, callers: Int)] = [:]
    // The completed or cancelled requests.
    var ended: [(key: Int, number: UInt64)] = []
    for step in 0..<500 {
      let key = Int.random(in: 0..<3, using: &generator)
      switch Int.random(in: 0..<5, using: &generator) {
      case 0...1:
        let place = state.join(key, priority: .medium) { step }
        #expect(place.isFirst == (joinable[key] == nil))
        joinable[key] = (place.number, (joinable[key]?.callers ?? 0) + 1)
        #expect(place.callers == joinable[key]!.callers)
      case 2:
        guard let request = joinable[key] else { break }
        let isLast = request.callers == 1
        #expect(state.leave(key, number: request.number) == (isLast ? .cancel : .nothing))
        joinable[key] = isLast ? nil : (request.number, request.callers - 1)
        if isLast { ended.append((key, request.number)) }
      case 3:
        guard let request = joinable.removeValue(forKey: key) else { break }
        #expect(state.finish(key, number: request.number) == true)
        ended.append((key, request.number))
      default:
        guard let request = ended.randomElement(using: &generator) else { break }
        #expect(state.leave(request.key, number: request.number) == .nothing)
        #expect(state.finish(request.key, number: request.number) == false)
      }
    }
  }
}
