internal import Hummingbird

/// The answers to the latest requests, so that a repeated request gets the answer of the first one.
actor KeptAnswers<Answer: Sendable> {
  private struct Kept {
    /// The content of the request; see ``answer(to:question:_:)``.
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

  /// Returns the answer to the first request with a key, as long as the key is one of the latest.
  ///
  /// The answer of a request that failed isn't kept, so the next request with the key is performed.
  ///
  /// - Parameters:
  ///   - key: The idempotency key.
  ///   - question: The content of the request, which must be the same in each request with the key.
  ///   - body: Performs the request.
  /// - Throws: The error of `body`, or a ``Problem`` if the first request with the key had another content.
  func answer(
    to key: String, question: String, _ body: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    if let first = kept[key] {
      guard first.question == question else {
        throw Problem(.unprocessableContent, "The Idempotency-Key belongs to another request.")
      }
      return try await first.answer.value
    }
    // Not cancelled with the request, because a repetition may wait for it. The task has a high priority, because it
    // would otherwise wait at each step behind the writes to every open stream.
    let answer = Task(priority: .high) { try await body() }
    kept[key] = Kept(question: question, answer: answer)
    order.append(key)
    if order.count > maximumCount { kept[order.removeFirst()] = nil }
    do {
      return try await answer.value
    } catch {
      // Meanwhile the key may have been removed as the oldest, and used again.
      if kept[key]?.answer == answer {
        kept[key] = nil
        order.removeAll { $0 == key }
      }
      throw error
    }
  }
}
