package reqbody

import "net/http"

// Turn is the answer of a request that reads many rows. Its turn is over when the answer begins, so that a client that
// does not read keeps it from none.
type Turn struct {
	http.ResponseWriter
	place *Place
}

// Read waits for the turn of a request that reads many rows. A caller has half of all turns at most. It returns
// [NoRoom] when there was none in time.
func (s *Rooms) Read(w http.ResponseWriter, r *http.Request) (*Turn, error) {
	place, err := s.Reads.Enter(r.Context(), CallerOf(r), 1, s.Wait, nil)
	if err != nil {
		return nil, err
	}
	return &Turn{w, place}, nil
}

// Leave ends the turn, if the answer has not begun.
func (t *Turn) Leave() {
	if t.place != nil {
		t.place.Leave()
		t.place = nil
	}
}

func (t *Turn) WriteHeader(status int) {
	t.Leave()
	t.ResponseWriter.WriteHeader(status)
}

func (t *Turn) Write(p []byte) (int, error) {
	t.Leave()
	return t.ResponseWriter.Write(p)
}

// Unwrap leads [http.ResponseController] to the connection.
func (t *Turn) Unwrap() http.ResponseWriter { return t.ResponseWriter }
