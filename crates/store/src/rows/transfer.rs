//! Exporting and importing a whole queue as lines: see [`crate::transfer`].
use crate::rows::tx::Tx;
use crate::transfer::{ImportError, ImportSummary, Line};
use crate::{ExportScope, StoreError};
pub(crate) fn export(
    _tx: &Tx<'_>,
    _which: &ExportScope<'_>,
    _sink: &mut dyn FnMut(Line) -> bool,
) -> Result<(), StoreError> {
    todo!()
}
pub(crate) fn import(
    _tx: &mut Tx<'_>,
    _lines: &mut dyn Iterator<Item = Result<Line, ImportError>>,
    _if_absent: bool,
    _by: &str,
) -> Result<ImportSummary, ImportError> {
    todo!()
}
