package wire

// Register announces an address that is called with the tasks of some tags.
type Register struct {
	App     string   `json:"app" doc:"The application, 1 to 128 bytes: tasks saved with this app go only to its addresses"`
	Address string   `json:"address" doc:"URL that tasks are posted to"`
	Tags    []string `json:"tags" doc:"Whose tasks it takes; 1 to 100"`
	Secret  string   `json:"secret,omitempty" doc:"Signs the calls: whsec_ and base64 of 24 to 64 bytes; a former one signs on for a day. Left out, the receiver keeps the one that it has"`
	TTL     Duration `json:"ttl,omitzero" doc:"Without a heartbeat it is not called after this; 5 s to 1 h, default the one that it has, or 30 s"`
}

// Receiver is a registered address. Its secret is never shown.
type Receiver struct {
	ID      ID       `json:"id"`
	App     string   `json:"app"`
	Address string   `json:"address"`
	Tags    []string `json:"tags"`
	Signed  bool     `json:"signed" doc:"It has a secret"`
	TTLMS   int64    `json:"ttl_ms" doc:"How long it lives without a heartbeat"`
	Created Time     `json:"created"`
	Expires Time     `json:"expires" doc:"Unless a heartbeat comes before"`
}

// ReceiverList lists them.
type ReceiverList struct {
	Receivers []Receiver `json:"receivers"`
}
