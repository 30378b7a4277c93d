public import DataStore
public import Repository

/// Returns a repository of local drafts, by the id of the post.
public func draftsRepository(store: any KeyValueStore) -> LocalRepository<String, Draft> {
  LocalRepository("drafts", default: Draft(), store: store)
}
