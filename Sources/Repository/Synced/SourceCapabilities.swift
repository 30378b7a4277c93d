internal import Foundation

/// What a source can do, found out once: fetch, and perhaps fetch pages and send mutations.
///
/// A repository is generic over any source, so whether a source is paged or mutable is a question for the running program.
struct SourceCapabilities<Source: RepositorySource>: Sendable {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation

  struct Paging: Sendable {
    let fetch: @Sendable (Key, _ cursor: String?, _ limit: Int) async throws(Source.Failure) -> Value
    let nextCursor: @Sendable (Value) -> String?
    let joinNewest: @Sendable (_ page: Value, _ stored: Value?, _ fetched: Value?, _ refusedCursor: String?) -> Value
    let joinNext: @Sendable (_ page: Value, _ cursor: String, _ stored: Value?) -> Value?
  }

  struct Sending: Sendable {
    let empty: Value?
    let send: @Sendable (Mutation, Key, MutationID) async throws(Source.Failure) -> MutationReply<Value>
    let lane: @Sendable (Mutation, Key) -> String
  }

  let source: Source
  let paging: Paging?
  let sending: Sending?
  /// Completes a fetched value by what is stored; see ``CompletingSource``.
  let completing: (@Sendable (_ fetched: Value, _ stored: Value) -> Value)?

  /// Whether values may belong to users: the keys that Foundation and the standard library have don't say.
  let hasUsers = !(Key.self is String.Type || Key.self is Int.Type || Key.self is UUID.Type)

  /// Returns a fetched value with what it lacks.
  func complete(_ fetched: Value, _ stored: Value?) -> Value {
    guard let completing, let stored else { return fetched }
    return completing(fetched, stored)
  }

  init(_ source: Source) {
    self.source = source
    paging = (source as? any PagedSource).flatMap { Self.paging(of: $0) }
    sending = (source as? any MutableSource).flatMap { Self.sending(of: $0) }
    completing = (source as? any CompletingSource).flatMap { Self.completing(of: $0) }
  }

  private static func completing<Completing: CompletingSource>(
    of source: Completing
  ) -> (@Sendable (Value, Value) -> Value)? {
    let complete: @Sendable (Completing.Value, Completing.Value) -> Completing.Value = {
      source.complete($0, with: $1)
    }
    return complete as? @Sendable (Value, Value) -> Value
  }

  private static func paging<Paged: PagedSource>(of source: Paged) -> Paging? {
    typealias Capabilities = SourceCapabilities<Paged>
    let paging = Capabilities.Paging(
      fetch: { (key, cursor, limit) async throws(Paged.Failure) in
        try await source.fetch(key, after: cursor, limit: limit)
      },
      nextCursor: { $0.nextCursor },
      joinNewest: { PageJoin.newest($0, over: $1, fetched: $2, refusedCursor: $3) },
      joinNext: { PageJoin.next($0, after: $1, behind: $2) })
    // `Paged` is `Source`, which the compiler can't know.
    return paging as? Paging
  }

  private static func sending<Mutable: MutableSource>(of source: Mutable) -> Sending? {
    typealias Capabilities = SourceCapabilities<Mutable>
    let sending = Capabilities.Sending(
      empty: Mutable.empty,
      send: { (mutation, key, id) async throws(Mutable.Failure) in try await source.send(mutation, to: key, id: id) },
      lane: { source.orderingKey(of: $0, on: $1) })
    return sending as? Sending
  }
}
