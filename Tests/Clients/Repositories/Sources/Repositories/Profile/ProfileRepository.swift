public import DataStore
public import Repository

/// A read-only repository of user profiles.
public typealias ProfileRepository = SyncedRepository<FetchSource<String, Profile, ProfileError>>

/// Returns a repository of user profiles.
public func profileRepository(_ client: any ProfileClient, store: any KeyValueStore) -> ProfileRepository {
  SyncedRepository("profile", store: store, fetch: client.profile(of:))
}
