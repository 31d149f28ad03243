package engine

// Version is what the node's row says of the program.
const Version = "0.1.0"
