public import DataStore
public import Foundation
public import GraphQLClient
internal import Repository

/// An error thrown by a ``MomentsRepo``.
///
/// A failed call doesn't change the stored timeline, with two exceptions. If the server refuses to return the complete
/// timeline, likes that the server has confirmed are applied to the stored timeline, because no fetched timeline will
/// include them. For a ``store(_:)`` error, `StoreError` describes the exceptions.
///
/// Cancelling the calling task doesn't cancel its like, or a request that other callers share. Both may therefore
/// change the stored timeline after the call has thrown ``cancelled``.
public enum MomentsRepoError: Error, Sendable, Equatable {
  /// The request failed: the server couldn't be reached, refused it, or sent a reply that can't be used.
  case session(APISessionError)
  /// The store couldn't read or write the data.
  case store(StoreError)
  /// The queue of unsent likes is full. The like was not queued.
  case queueFull
  /// The user has signed out, or is signing out.
  ///
  /// After the sign-out, no timeline and no likes of the user are kept.
  case signedOut
  /// The calling task was cancelled, or the like was cancelled through ``MomentsRepo/mutations``.
  ///
  /// If the call set a like, it is unknown whether the server has the like.
  case cancelled

  init(_ error: APISessionError) {
    self = error == .cancelled ? .cancelled : .session(error)
  }

  init(_ error: RepositoryError<APISessionError>) {
    switch error {
    case .server(let error): self.init(error)
    case .store(let error): self = .store(error)
    case .queueFull: self = .queueFull
    case .signedOut: self = .signedOut
    case .conflict: preconditionFailure("A like can't conflict with a timeline.")
    case .cancelled: self = .cancelled
    }
  }
}

extension MomentsRepoError: CustomStringConvertible {
  /// A text that says what happened and what to do.
  public var description: String {
    switch self {
    case .session(let error): error.description
    case .store(let error): error.description
    case .queueFull: RepositoryError<APISessionError>.queueFull.description
    case .signedOut: RepositoryError<APISessionError>.signedOut.description
    case .cancelled: "The call was cancelled before it was completed. Call again if the result is still needed."
    }
  }
}

extension MomentsRepoError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
