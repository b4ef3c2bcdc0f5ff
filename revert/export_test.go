package revert

// BatchCalls is the number of calls that one step of a prune erases.
const BatchCalls = batchCalls
