internal import Hummingbird

/// The answers to the last requests, for those that are repeated.
actor KeptAnswers<Answer: Sendable> {
  private struct Kept {
    let question: String
    let answer: Task<Answer, any Error>
  }

  private let maximumCount: Int
  private var kept: [String: Kept] = [:]
  /// The keys, oldest first.
  private var order: [String] = []

  init(maximumCount: Int) {
    self.maximumCount = maximumCount
  }

  /// Returns the answer to the first request under a key.
  ///
  /// One that failed isn't kept.
  ///
  /// - Throws: What `body` throws, or a ``Problem`` if the key belongs to another question.
  func answer(
    to key: String, question: String, _ body: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    if let first = kept[key] {
      guard first.question == question else {
        throw Problem(.unprocessableContent, "The Idempotency-Key belongs to another request.")
      }
      return try await first.answer.value
    }
    // Not cancelled with the request, as a repetition waits for it. Its priority is high because it would otherwise wait at
    // each step behind the writes to every open stream.
    let answer = Task(priority: .high) { try await body() }
    kept[key] = Kept(question: question, answer: answer)
    order.append(key)
    if order.count > maximumCount { kept[order.removeFirst()] = nil }
    do {
      return try await answer.value
    } catch {
      kept[key] = nil
      order.removeAll { $0 == key }
      throw error
    }
  }
}
