// The sessions of this module are created with an `APISession`, and throw `APISessionError`.
@_exported public import GraphQLClient
// The streams of `MomentsRepo` are `ObservedValues`, a type of the module `Repository`.
@_exported public import Repository
