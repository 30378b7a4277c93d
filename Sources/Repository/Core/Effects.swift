internal import DataStore

/// What observers of the queue see of it, beside the list of mutations.
struct QueueSummary: Equatable {
  var version: UInt64 = 0
  var count = 0
  var liveCount = 0
  var undecidedCount = 0
}

/// What the engine does after an input, because ``SyncCore`` has decided it.
///
/// The engine performs the effects in the order of the properties: an observer is served before a call returns, so that
/// a caller that begins to observe sees what it has changed.
struct Effects<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Failure = RepositoryError<Source.Failure>
  typealias Entry = MutationQueue<Key, Source.Mutation>.Entry

  /// The end of a call, or of a part of one.
  enum End {
    case call(MutationID, Result<MutationResult, Failure>)
    /// A fetch whose reply was judged; the value says whether the reply was accepted.
    case fetch(Int, Result<Bool, Failure>)
  }

  enum Report {
    case event(RepositoryEvent)
    /// Earlier events, which new subscribers would otherwise receive, may name the keys of a user who has signed out.
    case forgetEvents
  }

  /// Work that takes time.
  enum Operation: Sendable {
    case send(Entry, attempt: UInt64)
    /// Stores the replies that wait to be judged.
    case write(KeyID<Key>)
    /// Stores the present record of a mutation.
    case save(MutationID)
    /// Stores the present record of a mutation, even if the repository is released.
    case saveToCompletion(MutationID)
    /// Stores a conflict, and then ends the call of the mutation.
    case saveConflict(MutationID)
    /// Stores that an attempt has ended, and learns of a sign-in through other repositories.
    case awaitSignIn(MutationID)
    /// Reads the mutations before one that is behind a gap.
    case readPredecessors(MutationID, sequence: UInt64)
    /// Finds out whether a record that this program can't use is still stored.
    case checkRecord(MutationID, StoreTag)
    case campaign
    /// Gives the lead up unless something is to be sent.
    case rest
    /// Fetches the whole value for mutations whose replies couldn't be used.
    case fetchWhole(KeyID<Key>)
    /// Fetches an observed value.
    case fetchObserved(ObservedLoadingState<Key>.Request)
    /// Waits until the mutations are sent, and then fetches the observed values.
    case fetchAfterSending(isDelayed: Bool, changeCount: Int)
    case makeRoom
    case endFollowing(StoreFeedPart)
    /// Completes a sign-out.
    case finishSignOut(UserDigest)
    /// Reads the observed data of a user who has signed in.
    case reopen(UserDigest)
  }

  /// The users whose observers are told that they have signed out, with the keys that were in use.
  var closed: [(user: UserDigest, keys: [Key])] = []
  /// The keys that were released.
  var released: [Key] = []
  /// The keys that have changed.
  var published: [KeyID<Key>] = []
  var reports: [Report] = []
  var queue = QueueSummary()
  var ends: [End] = []
  /// Whether the waits of the backoff end.
  var endsWaits = false
  var operations: [Operation] = []
  /// The time of the next input, unless another one comes first; see ``SyncCore/ring()``.
  var deadline: Duration?
}
