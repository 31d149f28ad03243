package row

import "encoding/json"

// Declares says which set of schedules the program of a node declares. Each node writes its own into its row, as JSON.
// A node of an older version writes none.
type Declares struct {
	// Token belongs to the process that wrote it. An older version may take a number over and leave the column as it
	// was.
	Token    string `json:"token"`
	Owner    string `json:"owner"`
	Revision Time   `json:"revision"` // of the program
	Hash     string `json:"hash"`     // of the set, in hexadecimal
}

// mostDeclares is more bytes than any process writes.
const mostDeclares = 4 << 10

// ReadDeclares reads the column of the process with the token. It is zero for anything else.
func ReadDeclares(column []byte, token string) (d Declares) {
	if len(column) > mostDeclares || json.Unmarshal(column, &d) != nil || d.Token != token {
		return Declares{}
	}
	return d
}

// Column returns what is stored, nil for the zero Declares.
func (d Declares) Column() []byte {
	if d.Token == "" {
		return nil
	}
	column, _ := json.Marshal(d) // it always marshals
	return column
}
