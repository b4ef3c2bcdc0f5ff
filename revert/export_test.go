package revert

// BatchCalls is how many calls one step of a prune erases.
const BatchCalls = batchCalls
