import Repository
import RepositoryTesting

/// An element that counts how often it was added.
struct Mark: Codable, Equatable, Identifiable, Sendable {
  let id: Int
  var count = 1
}

/// A change that adds a mark.
struct MarkChange: RepositoryMutation, Equatable {
  let mark: Int
  /// The number of its lane within the key.
  var lane = 0
  /// Whether applying the change to a value that has the mark increases the mark's count.
  ///
  /// If not, the change has no effect on such a value, so the repository may conclude that the value includes the
  /// change.
  var isCounting = false
  /// A mark whose presence makes the change impossible.
  var excluded: Int?
  /// Whether the server refuses the change.
  var isRefused = false

  func apply(to value: inout Paged<Mark>) throws(MutationConflict) {
    if let excluded, value.elements.contains(where: { $0.id == excluded }) {
      // The repository must discard this modification, because the method then throws.
      value.elements.insert(Mark(id: -mark), at: 0)
      throw MutationConflict("\(excluded)")
    }
    if let index = value.elements.firstIndex(where: { $0.id == mark }) {
      if isCounting { value.elements[index].count += 1 }
    } else {
      value.elements.insert(Mark(id: mark), at: 0)
    }
  }
}

enum MarksFailure: Error, Hashable, Sendable {
  case offline, noReply, refused, conflict, signedOut

  var disposition: FailureDisposition {
    switch self {
    case .offline: .retryLater()
    case .noReply: .unknownOutcome
    case .refused: .refused
    case .conflict: .conflict
    case .signedOut: .needsSignIn
    }
  }
}

/// The form in which the server acknowledges a change.
enum Acknowledgement: CaseIterable, Sendable {
  case value, patch, done
}

typealias MarksServer = InMemoryServer<String, Paged<Mark>, MarkChange>

/// A source of marks.
protocol MarksSource: MutableSource
where Key == String, Value == Paged<Mark>, Mutation == MarkChange, Failure == MarksFailure {
  init(_ client: MarksClient)

  /// Fetches another page; `nil` if values aren't paged.
  static var loadMore: (@Sendable (SyncedRepository<Self>, String) async throws -> Void)? { get }
}

/// A source that fetches all marks of a key at once.
struct WholeMarksSource: MarksSource {
  static let loadMore: (@Sendable (SyncedRepository<Self>, String) async throws -> Void)? = nil

  let name = "marks"
  let client: MarksClient

  init(_ client: MarksClient) { self.client = client }

  func fetch(_ key: String) async throws(MarksFailure) -> Paged<Mark> {
    try await client.fetch(key, after: nil, limit: .max)
  }

  func send(
    _ mutation: MarkChange, to key: String, id: MutationID
  ) async throws(MarksFailure) -> MutationReply<Paged<Mark>> {
    try await client.send(mutation, to: key, id: id)
  }

  func disposition(of failure: MarksFailure) -> FailureDisposition { failure.disposition }

  func orderingKey(of mutation: MarkChange, on key: String) -> String { "\(key)/\(mutation.lane)" }
}

/// A source that fetches marks in pages, and whose pending marks are visible even if nothing is stored.
struct PagedMarksSource: PagedSource, MarksSource {
  static var empty: Paged<Mark>? { Paged() }

  static let loadMore: (@Sendable (SyncedRepository<Self>, String) async throws -> Void)? = { repository, key in
    try await repository.loadMore(key)
  }

  let name = "marks"
  let client: MarksClient

  init(_ client: MarksClient) { self.client = client }

  func fetch(_ key: String, after cursor: String?, limit: Int) async throws(MarksFailure) -> Paged<Mark> {
    try await client.fetch(key, after: cursor, limit: limit)
  }

  func send(
    _ mutation: MarkChange, to key: String, id: MutationID
  ) async throws(MarksFailure) -> MutationReply<Paged<Mark>> {
    try await client.send(mutation, to: key, id: id)
  }

  func disposition(of failure: MarksFailure) -> FailureDisposition { failure.disposition }

  func orderingKey(of mutation: MarkChange, on key: String) -> String { "\(key)/\(mutation.lane)" }
}
