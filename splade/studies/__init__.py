"""Studies: experiments that ask of trained models more than how good they are."""
