public import DataStore
public import Foundation
public import GraphQLClient
internal import Repository

/// Why a ``MomentsRepo`` could not do what it was asked.
///
/// What was stored before is intact.
public enum MomentsRepoError: Error, Sendable, Equatable {
  /// The server could not be reached, or refused.
  case session(APISessionError)
  /// The device could not read or keep the data.
  case store(StoreError)
  /// Too many likes wait to be sent. Nothing is kept of this one.
  case queueFull
  /// The user has signed out. Nothing of the user is kept.
  case signedOut
  /// The calling task was cancelled. The server may have done its part, but nothing says so.
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
    case .conflict: preconditionFailure("A like is possible on every timeline.")
    case .cancelled: self = .cancelled
    }
  }
}

extension MomentsRepoError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .session(let error): error.description
    case .store(let error): error.description
    case .queueFull: RepositoryError<APISessionError>.queueFull.description
    case .signedOut: RepositoryError<APISessionError>.signedOut.description
    case .cancelled: "The call was cancelled before it was done. Call again if the result is still wanted."
    }
  }
}

extension MomentsRepoError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
