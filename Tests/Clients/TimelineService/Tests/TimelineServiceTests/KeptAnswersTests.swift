import Testing

@testable import TimelineServer

@Suite(.timeLimit(.minutes(5))) struct KeptAnswersTests {
  private struct Failure: Error {}

  @Test func `A request that fails doesn't remove the answer to a newer request with the same key`() async throws {
    let answers = KeptAnswers<Int>(maximumCount: 1)
    let (starts, start) = AsyncStream.makeStream(of: Void.self)
    let (releases, release) = AsyncStream.makeStream(of: Void.self)
    let first = Task {
      try await answers.answer(to: "a", question: "?") {
        start.yield()
        for await _ in releases { break }
        throw Failure()
      }
    }
    for await _ in starts { break }
    // Only one key is kept, so "b" replaces "a". Then "a" replaces "b", and belongs to a newer request.
    #expect(try await answers.answer(to: "b", question: "?") { 1 } == 1)
    #expect(try await answers.answer(to: "a", question: "?") { 2 } == 2)
    release.yield()
    await #expect(throws: Failure.self) { try await first.value }
    #expect(try await answers.answer(to: "a", question: "?") { 3 } == 2)
  }

  @Test func `A repeated request is performed again only if the first one failed`() async throws {
    let answers = KeptAnswers<Int>(maximumCount: 1)
    await #expect(throws: Failure.self) { try await answers.answer(to: "a", question: "?") { throw Failure() } }
    #expect(try await answers.answer(to: "a", question: "?") { 1 } == 1)
    #expect(try await answers.answer(to: "a", question: "?") { 2 } == 1)
  }
}
