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
  /// The calling task was cancelled. The server may have done its part, but nothing says so.
  case cancelled

  init(_ error: APISessionError) {
    self = error == .cancelled ? .cancelled : .session(error)
  }

  init(_ error: MutationQueueError) {
    guard case .store(let error) = error else {
      preconditionFailure("A like with an id of its own is enqueued once. \(error)")
    }
    self = .store(error)
  }
}

extension MomentsRepoError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .session(let error): error.description
    case .store(let error): error.description
    case .cancelled: "The call was cancelled before it was done. Call again if the result is still wanted."
    }
  }
}

extension MomentsRepoError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}
