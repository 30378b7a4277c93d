public import DataStore
public import Repository

/// Returns a repository of local drafts, whose keys are the ids of the posts.
public func draftsRepository(store: any KeyValueStore) -> LocalRepository<String, Draft> {
  LocalRepository("drafts", default: Draft(), store: store)
}
