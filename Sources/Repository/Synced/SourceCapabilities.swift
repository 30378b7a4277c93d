internal import Foundation

/// The capabilities of a source, determined once at run time: fetching, and optionally paging, completing fetched
/// values, and sending mutations.
///
/// A repository is generic over all sources, so whether a source is paged or mutable can only be determined at run
/// time.
final class SourceCapabilities<Source: RepositorySource>: Sendable {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation

  /// The operations of a ``PagedSource``.
  ///
  /// In these operations and those of ``Backward``, `fetched` is the stored value as it was fetched; `nil` if no
  /// mutation has changed it since.
  struct Paging: Sendable {
    /// Fetches a part of a list; returns `nil` if the load is no longer wanted.
    let fetch:
      @Sendable (PageRequest, PageLoad<Key, Value, Source.Failure>) async throws(Source.Failure) -> FetchedPages<Value>?
    let nextCursor: @Sendable (Value) -> String?
    /// Returns whether fetched pages may be shorter than the list only because too few were fetched: more elements may
    /// have been stored or shown since the fetch began.
    ///
    /// A list that doesn't begin with the newest element may become shorter.
    let isTooShort: @Sendable (_ pages: Value, _ stored: Value, _ visible: Value?) -> Bool
    /// Joins the newest pages to the stored ones; returns `nil` if they can't be joined.
    let joinNewest: @Sendable (_ pages: Value, _ stored: Value?, _ fetched: Value?, _ refusedCursor: String?) -> Value?
    let joinNext: @Sendable (_ page: Value, _ cursor: String, _ stored: Value?) -> Value?
    /// `nil` if pages can be fetched in only one direction.
    let backward: Backward?
  }

  /// The operations of a ``BidirectionalPagedSource``.
  struct Backward: Sendable {
    let fetch: @Sendable (Key, _ cursor: String, _ limit: Int) async throws(Source.Failure) -> Value
    let previousCursor: @Sendable (Value) -> String?
    /// Records that no page comes before a page.
    let endAtBeginning: @Sendable (inout Value) -> Void
    /// Returns the cursor of the page after the last element; `nil` if there are no elements.
    let endCursor: @Sendable (Value) -> String?
    /// Joins a next page, and keeps the previous cursor of the stored value.
    let joinNext: @Sendable (_ page: Value, _ cursor: String, _ stored: Value?) -> Value?
    let joinPrevious: @Sendable (_ page: Value, _ cursor: String, _ stored: Value?) -> Value?
    /// Replaces the stored elements before the one with the given cursor by a page that was fetched again.
    let joinFirst: @Sendable (_ page: Value, _ cursor: String, _ stored: Value?) -> Value?
    /// Returns the cursor of the element that follows the first page of a value, and the number of elements in that
    /// page; `nil` if none of the elements at the indices from 1 to `limit` is known to come from the server.
    let endOfFirstPage: @Sendable (Value, _ fetched: Value?, _ limit: Int) -> (cursor: String, count: Int)?
    /// Drops elements until at most `count` remain, if that is possible: at the end if `isAtEnd` is `true`, and
    /// otherwise at the beginning; see ``PageJoin``.
    let shorten: @Sendable (inout Value, _ fetched: Value?, _ page: Value, _ count: Int, _ isAtEnd: Bool) -> Void
  }

  /// The operations of a ``MutableSource``, and its ``MutableSource/empty`` value.
  struct Sending: Sendable {
    let empty: Value?
    let send: @Sendable (Mutation, Key, MutationID) async throws(Source.Failure) -> MutationReply<Value>
    let lane: @Sendable (Mutation, Key) -> String
  }

  let source: Source
  let paging: Paging?
  let sending: Sending?
  /// Completes a fetched value with parts of the stored one; see ``CompletingSource``.
  let completing: (@Sendable (_ fetched: Value, _ stored: Value) -> Value)?

  /// Whether keys can have a ``RepositoryKey/userID``.
  ///
  /// `String`, `Int` and `UUID` keys have none.
  let hasUsers = !(Key.self is String.Type || Key.self is Int.Type || Key.self is UUID.Type)

  /// Returns a fetched value, completed with parts of the stored one.
  func complete(_ fetched: Value, _ stored: Value?) -> Value {
    guard let completing, let stored else { return fetched }
    return completing(fetched, stored)
  }

  /// Returns the lane of a mutation.
  func lane(of mutation: Mutation, on key: Key) -> LaneID {
    guard let sending else { preconditionFailure("Only the repository of a mutable source has mutations.") }
    return LaneID(userID: key.userID, orderingKey: sending.lane(mutation, key))
  }

  init(_ source: Source) {
    self.source = source
    // In each of these functions, `SameSource` is `Source`, which the compiler can't infer.
    paging = (source as? any PagedSource).flatMap { Self.paging(of: $0) }
    sending = (source as? any MutableSource).flatMap { Self.sending(of: $0) }
    completing = (source as? any CompletingSource).flatMap { Self.completing(of: $0) }
  }

  private static func completing<SameSource: CompletingSource>(
    of source: SameSource
  ) -> (@Sendable (Value, Value) -> Value)? {
    let complete: @Sendable (SameSource.Value, SameSource.Value) -> SameSource.Value = {
      source.complete($0, with: $1)
    }
    return complete as? @Sendable (Value, Value) -> Value
  }

  private static func paging<SameSource: PagedSource>(of source: SameSource) -> Paging? {
    typealias Capabilities = SourceCapabilities<SameSource>
    let backward = (source as? any BidirectionalPagedSource).flatMap { Capabilities.backward(of: $0) }
    let paging = Capabilities.Paging(
      fetch: { (request, load) async throws(SameSource.Failure) in
        var fetcher = PageFetcher(source, backward, load)
        return try await fetcher.fetch(request)
      },
      nextCursor: { $0.nextCursor },
      isTooShort: { pages, stored, visible in
        let count = max(stored.elements.count, visible?.elements.count ?? 0)
        return pages.nextCursor != nil && pages.elements.count < count && backward?.previousCursor(stored) == nil
      },
      joinNewest: { PageJoin.newest($0, over: $1, fetched: $2, refusedCursor: $3) },
      joinNext: { page, cursor, stored in
        guard let backward else { return PageJoin.next(page, after: cursor, behind: stored) }
        return backward.joinNext(page, cursor, stored)
      }, backward: backward)
    return paging as? Paging
  }

  private static func backward<SameSource: BidirectionalPagedSource>(of source: SameSource) -> Backward? {
    typealias Capabilities = SourceCapabilities<SameSource>
    let backward = Capabilities.Backward(
      fetch: { (key, cursor, limit) async throws(SameSource.Failure) in
        try await source.fetch(key, before: cursor, limit: limit)
      },
      previousCursor: { $0.previousCursor },
      endAtBeginning: { $0.previousCursor = nil },
      endCursor: { $0.elements.last.map { source.cursor(of: $0) } },
      joinNext: { page, cursor, stored in
        var joined = PageJoin.next(page, after: cursor, behind: stored)
        joined?.previousCursor = stored?.previousCursor
        return joined
      },
      joinPrevious: { PageJoin.previous($0, before: $1, inFrontOf: $2) },
      joinFirst: { page, cursor, stored in PageJoin.first(page, over: stored) { source.cursor(of: $0) == cursor } },
      endOfFirstPage: { value, fetched, limit in
        let serverIDs = fetched.map { Set($0.elements.map(\.id)) }
        let maximumCount = min(limit, value.elements.count - 1)
        let counts = stride(from: maximumCount, to: 0, by: -1)
        // The element after the first `count` ones has the index `count`.
        return counts.first { serverIDs?.contains(value.elements[$0].id) ?? true }.map { count in
          (source.cursor(of: value.elements[count]), count)
        }
      },
      shorten: { value, fetched, page, count, isAtEnd in
        // The server's elements are those of the page, and those that were fetched before.
        let serverIDs = fetched.map { Set($0.elements.map(\.id)).union(page.elements.map(\.id)) }
        let cursor = { serverIDs?.contains($0.id) ?? true ? source.cursor(of: $0) : nil }
        if isAtEnd {
          PageJoin.dropLast(downTo: count, &value, cursor: cursor)
        } else {
          PageJoin.dropFirst(downTo: count, &value, cursor: cursor)
        }
      })
    return backward as? Backward
  }

  private static func sending<SameSource: MutableSource>(of source: SameSource) -> Sending? {
    typealias Capabilities = SourceCapabilities<SameSource>
    let sending = Capabilities.Sending(
      empty: SameSource.empty,
      send: { (mutation, key, id) async throws(SameSource.Failure) in
        try await source.send(mutation, to: key, id: id)
      },
      lane: { source.orderingKey(of: $0, on: $1) })
    return sending as? Sending
  }
}
