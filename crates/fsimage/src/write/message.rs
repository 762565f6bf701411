//! A protobuf message that is put together field by field, in the order of their numbers.

/// A message so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

/// Puts a number of seven bits a byte behind, the lowest first.
pub(super) fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Message {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn tag(&mut self, field: u32, kind: u64) {
        push_number(&mut self.0, u64::from(field) << 3 | kind);
    }

    pub fn number(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, 0);
        push_number(&mut self.0, value);
        self
    }

    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Message {
        self.tag(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn fixed32(&mut self, field: u32, value: u32) -> &mut Message {
        self.tag(field, 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn blob(&mut self, field: u32, value: &[u8]) -> &mut Message {
        self.tag(field, 2);
        push_number(&mut self.0, value.len() as u64);
        self.0.extend(value);
        self
    }

    pub fn text(&mut self, field: u32, value: &str) -> &mut Message {
        self.blob(field, value.as_bytes())
    }

    pub fn message(&mut self, field: u32, value: &Message) -> &mut Message {
        self.blob(field, value.bytes())
    }

    /// Several numbers in one field; nothing if there are none.
    pub fn numbers(&mut self, field: u32, values: &[u64]) -> &mut Message {
        if values.is_empty() {
            return self;
        }
        let mut packed = Vec::with_capacity(values.len() * 4);
        values.iter().for_each(|value| push_number(&mut packed, *value));
        self.blob(field, &packed)
    }
}
