internal import Hummingbird

/// The answers to the latest requests, kept so that a repeated request gets the same answer.
actor KeptAnswers<Answer: Sendable> {
  private struct Entry {
    /// The content of the request; see ``answer(to:question:_:)``.
    let question: String
    let answer: Task<Answer, any Error>
  }

  private let maximumCount: Int
  private var entries: [String: Entry] = [:]
  /// The keys, oldest first.
  private var order: [String] = []

  init(maximumCount: Int) {
    self.maximumCount = maximumCount
  }

  /// Returns the kept answer to the first request with a key, or performs the request if no answer is kept.
  ///
  /// The answers for the `maximumCount` newest keys are kept. A failure isn't kept, so the next request with the key is
  /// performed.
  ///
  /// - Parameters:
  ///   - key: The idempotency key.
  ///   - question: The content of the request, which must be the same in each request with the key.
  ///   - body: Performs the request.
  /// - Throws: The error of `body`, or a ``Problem`` if the first request with the key had different content.
  func answer(
    to key: String, question: String, _ body: @escaping @Sendable () async throws -> Answer
  ) async throws -> Answer {
    if let first = entries[key] {
      guard first.question == question else {
        throw Problem(.unprocessableContent, "The Idempotency-Key belongs to another request.")
      }
      return try await first.answer.value
    }
    // The task isn't cancelled with the calling task, because a repeated request may wait for its answer. It has a high
    // priority, because each of its steps would otherwise wait for the writes to all open event streams.
    let answer = Task(priority: .high) { try await body() }
    entries[key] = Entry(question: question, answer: answer)
    order.append(key)
    if order.count > maximumCount { entries[order.removeFirst()] = nil }
    do {
      return try await answer.value
    } catch {
      // Before the failure, the key may have been removed as the oldest, and then used by a newer request.
      if entries[key]?.answer == answer {
        entries[key] = nil
        order.removeAll { $0 == key }
      }
      throw error
    }
  }
}
